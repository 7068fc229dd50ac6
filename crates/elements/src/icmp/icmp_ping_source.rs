//! `ICMPPingSource`: sends ICMP echo requests and reports the replies.

use super::ping_args::{ICMPPingSourceArgs, ICMPPingSourceState};
use castanet_element::prelude::*;
use castanet_element::wire::{Icmp, Ipv4Header};

/// Sends ICMP echo requests (pings) at an interval and reports the replies.
///
/// If its output is pull, the element sends a request for each packet pulled.
/// The input, which may stay unconnected, takes replies. The element counts the
/// replies to its own requests and measures their round-trip times. With
/// VERBOSE it reports each reply, and a summary at the end.
///
/// ```click
/// p :: ICMPPingSource(1.0.0.1, 2.0.0.2, IDENTIFIER 7, LIMIT 2, DATA "hello") -> out;  in -> p
/// + 1s
/// < out 1.0.0.1 > 2.0.0.2 icmp type echo ttl 200 id 1 ident 7 seq 1 "hello" ; dst 2.0.0.2 network 0
/// + 1s
/// < out 1.0.0.1 > 2.0.0.2 icmp type echo ttl 200 id 2 ident 7 seq 2 "hello"
/// > in  2.0.0.2 > 1.0.0.1 icmp type echo-reply ttl 60 ident 7 seq 1 "hello" ; time 1000000001.0015005
/// > in  2.0.0.2 > 1.0.0.1 icmp type echo-reply ttl 60 ident 8 seq 2 "hello" ; time 1000000002.5
/// ~ p :: ICMPPingSource: 5 bytes from 2.0.0.2: icmp_seq=1 ttl=60 time=1.500 ms
/// = p.count 2
/// = p.summary 2 packets transmitted, 1 received, 50% packet loss\nrtt min/avg/max/mdev = 1.500/1.500/1.500/0.000
/// = p.rtt_min 0.0015
/// = p.rtt_avg 0.0015
/// = p.rtt_max 0.0015
/// ! p.active false
/// ! p.src 1.0.0.9
/// ! p.dst 2.0.0.9
/// ! p.interval 0.5
/// ! p.limit -1
/// ! p.reset_counts
/// = p.count 0
/// ! p.active true
/// < out 1.0.0.9 > 2.0.0.9 icmp type echo ttl 200 id 1 ident 7 seq 1 "hello"
/// + 600ms
/// = p.src 1.0.0.9
/// < out 1.0.0.9 > 2.0.0.9 icmp type echo ttl 200 id 2 ident 7 seq 2 "hello"
/// ! p.active false
/// ```
/// ```click
/// p :: ICMPPingSource(1.0.0.1, 2.0.0.2, LIMIT 1, STOP true) -> out
/// + 1s
/// < out 1.0.0.1 > 2.0.0.2 icmp type echo ttl 200 id 1 ident 0 seq 1
/// = p.count 1
/// ```
/// ```click
/// p :: ICMPPingSource(1.0.0.1, 2.0.0.2, LIMIT 1, DATA "hello", MIRROR true, VERBOSE false) -> out;  in -> p
/// + 1s
/// < out 1.0.0.1 > 2.0.0.2 icmp type echo ttl 200 id 1 ident 0 seq 1 "hello"
/// > in  2.0.0.2 > 1.0.0.1 icmp type echo-reply ttl 60 ident 0 seq 1 "hello"
/// < out 1.0.0.1 > 2.0.0.2 icmp type echo ttl 200 id 2 ident 0 seq 2 "hello"
/// = p.count 2
/// ```
#[derive(Clone, Element)]
#[element(room = "icmp", args = ICMPPingSourceArgs, methods, ports = "0-1/1", processing = "h/a", gives = "ip")]
#[element(alias = "ICMPSendPings", headers = Gives(FirstHeader::Ip, MarkedHeader::Ip))]
pub struct ICMPPingSource {
    args: ICMPPingSourceArgs,
    /// Name of the element in reports.
    name: String,
    has_input: bool,
}

impl Build for ICMPPingSource {
    type Args = ICMPPingSourceArgs;
    fn build(args: ICMPPingSourceArgs, setup: &Setup) -> Result<Self, ArgError> {
        const HEADERS_LEN: usize = Ipv4Header::LEN + Icmp::LEN;
        if HEADERS_LEN + args.data.0.len() > usize::from(u16::MAX) {
            return Err(ArgError::new("is longer than IPv4 allows").at("DATA"));
        }
        let name = format!("{} :: ICMPPingSource", setup.name);
        Ok(ICMPPingSource { args, name, has_input: setup.inputs > 0 })
    }
}

#[handlers]
impl ICMPPingSource {
    /// Source address.
    #[read]
    fn src(&self) -> Ipv4Addr {
        self.args.src
    }
    /// Sets the source address.
    #[write(src)]
    fn set_src(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let src = Ipv4Addr::from_arg(text, names)?;
        Ok(self.with(|args| args.src = src))
    }
    /// Destination address.
    #[read]
    fn dst(&self) -> Ipv4Addr {
        self.args.dst
    }
    /// Sets the destination address.
    #[write(dst)]
    fn set_dst(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let dst = Ipv4Addr::from_arg(text, names)?;
        Ok(self.with(|args| args.dst = dst))
    }
    /// Whether the element sends requests.
    #[read]
    fn active(&self) -> bool {
        self.args.active
    }
    /// Sets whether the element sends requests.
    #[write(active)]
    fn set_active(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let active = bool::from_arg(text, names)?;
        Ok(self.with(|args| args.active = active))
    }
    /// Sets the maximum number of requests; a negative number means no limit.
    #[write]
    fn limit(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let limit = i64::from_arg(text, names)?;
        Ok(self.with(|args| args.limit = limit))
    }
    /// Sets the time between requests.
    #[write]
    fn interval(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let interval = Duration::from_arg(text, names)?;
        Ok(self.with(|args| args.interval = interval))
    }

    fn with(&self, change: impl Fn(&mut ICMPPingSourceArgs)) -> Self {
        let mut changed = self.clone();
        change(&mut changed.args);
        changed
    }
}

impl PerBatch for ICMPPingSource {
    type On = on::Ipv4;
    type Local = ICMPPingSourceState;
    type Fate = ();
    const SHARED: bool = true;

    fn batch(&self, state: &mut ICMPPingSourceState, _: usize, batch: Batch, cx: &mut Cx) {
        for packet in batch {
            self.args.take_reply(&self.name, state, packet, cx);
        }
    }
}

impl Source for ICMPPingSource {
    type Local = ICMPPingSourceState;
    type Fate = ();

    fn init(&self, state: &mut ICMPPingSourceState, cx: &mut Cx) -> Result<(), ArgError> {
        state.next = Some(cx.now() + self.args.interval);
        Ok(())
    }

    fn can_take_state(&self, _: &ICMPPingSource) -> bool {
        true
    }

    fn produce(&self, state: &mut ICMPPingSourceState, n: usize, cx: &mut Cx) -> NextRun {
        let left = u64::try_from(self.args.limit)
            .map_or(u64::MAX, |limit| limit.saturating_sub(state.pings.count()));
        if !self.args.active || left == 0 {
            state.next = None;
            return NextRun::Done;
        }
        if cx.is_pulled() {
            state.is_pulled = true;
            let n = cx.grant(n.min(usize::try_from(left).unwrap_or(n)));
            let sent = (0..n).take_while(|_| self.args.send_ping(state, cx)).count();
            return if sent > 0 { NextRun::Again } else { NextRun::Empty };
        }
        // An element that was idle sends the next request immediately.
        let due = state.next.unwrap_or(cx.now());
        if due > cx.now() {
            return NextRun::At(due);
        }
        if cx.grant(1) == 0 || !self.args.send_ping(state, cx) {
            return NextRun::Empty;
        }
        let next = due + self.args.interval.max(Duration::from_micros(1));
        state.next = Some(next);
        NextRun::At(next)
    }

    fn cleanup(&self, state: &mut ICMPPingSourceState, cx: &mut Cx) {
        if self.args.verbose && self.has_input {
            for line in state.pings.summary().lines() {
                cx.chatter(&format!("{}: {line}", self.name));
            }
        }
    }
}
