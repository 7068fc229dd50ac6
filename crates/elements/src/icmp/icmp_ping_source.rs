//! `ICMPPingSource`: pings, and how they are answered.

use super::pings::{Fields, Pinged};
use castanet_engine::prelude::*;
use castanet_engine::wire::{Icmp, Ipv4Header};

/// Sends ICMP echo requests every so often, and reports the replies it is given.
///
/// Where its output is pulled, each packet asked for is one. Replies come to
/// the input, which may stay open; those to this element's pings are counted,
/// timed, and with VERBOSE reported, at the end in sum.
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
#[derive(Clone, Element)]
#[element(room = "icmp", args = Fields, methods, ports = "0-1/1", processing = "h/a", gives = "ip")]
#[element(alias = "ICMPSendPings")]
pub struct ICMPPingSource {
    fields: Fields,
    /// As reports call the element.
    name: String,
    has_input: bool,
}

impl Build for ICMPPingSource {
    type Args = Fields;
    fn build(fields: Fields, setup: &Setup) -> Result<Self, ArgError> {
        const HEADERS: usize = Ipv4Header::LEN + Icmp::LEN;
        if HEADERS + fields.data.0.len() > usize::from(u16::MAX) {
            return Err(ArgError::new("is longer than IPv4 allows").at("DATA"));
        }
        let name = format!("{} :: ICMPPingSource", setup.name);
        Ok(ICMPPingSource { fields, name, has_input: setup.inputs > 0 })
    }
}

#[handlers]
impl ICMPPingSource {
    /// Who asks.
    #[read]
    fn src(&self) -> Ipv4Addr {
        self.fields.src
    }
    /// Sets who asks.
    #[write(src)]
    fn set_src(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let src = Ipv4Addr::from_arg(text, names)?;
        Ok(self.with(|fields| fields.src = src))
    }
    /// Who is asked.
    #[read]
    fn dst(&self) -> Ipv4Addr {
        self.fields.dst
    }
    /// Sets who is asked.
    #[write(dst)]
    fn set_dst(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let dst = Ipv4Addr::from_arg(text, names)?;
        Ok(self.with(|fields| fields.dst = dst))
    }
    /// Whether any are sent.
    #[read]
    fn active(&self) -> bool {
        self.fields.active
    }
    /// Says whether to send any.
    #[write(active)]
    fn set_active(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let active = bool::from_arg(text, names)?;
        Ok(self.with(|fields| fields.active = active))
    }
    /// Sets how many to send; no limit if negative.
    #[write]
    fn limit(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let limit = i64::from_arg(text, names)?;
        Ok(self.with(|fields| fields.limit = limit))
    }
    /// Sets the time from ping to ping.
    #[write]
    fn interval(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let interval = Duration::from_arg(text, names)?;
        Ok(self.with(|fields| fields.interval = interval))
    }

    fn with(&self, change: impl Fn(&mut Fields)) -> Self {
        let mut changed = self.clone();
        change(&mut changed.fields);
        changed
    }
}

impl PerBatch for ICMPPingSource {
    type On = on::Ipv4;
    type Local = Pinged;
    type Fate = ();
    const SHARED: bool = true;

    fn batch(&self, pings: &mut Pinged, _: usize, batch: Batch, cx: &mut Cx) {
        for packet in batch.iter() {
            self.fields.reply(&self.name, pings, packet, cx);
        }
        cx.consume(batch);
    }
}

impl Source for ICMPPingSource {
    type Local = Pinged;
    type Fate = ();

    fn begin(&self, pings: &mut Pinged, cx: &mut Cx) -> Result<(), ArgError> {
        pings.next = Some(cx.now() + self.fields.interval);
        Ok(())
    }

    fn continues(&self, _: &ICMPPingSource) -> bool {
        true
    }

    fn ask(&self, pings: &mut Pinged, n: usize, cx: &mut Cx) -> Asked {
        let left = u64::try_from(self.fields.limit)
            .map_or(u64::MAX, |limit| limit.saturating_sub(pings.pings.count()));
        if !self.fields.active || left == 0 {
            pings.next = None;
            return Asked::Done;
        }
        if cx.is_pulled() {
            let n = cx.grant(n.min(usize::try_from(left).unwrap_or(n)));
            let made = (0..n).take_while(|_| self.fields.ping(pings, cx)).count();
            return if made > 0 { Asked::Again } else { Asked::Empty };
        }
        // Who was idle sends the next at once.
        let due = pings.next.unwrap_or(cx.now());
        if due > cx.now() {
            return Asked::At(due);
        }
        if cx.grant(1) == 0 || !self.fields.ping(pings, cx) {
            return Asked::Empty;
        }
        let next = due + self.fields.interval.max(Duration::from_micros(1));
        pings.next = Some(next);
        Asked::At(next)
    }

    fn end(&self, pings: &mut Pinged, cx: &mut Cx) {
        if self.fields.verbose && self.has_input {
            for line in pings.pings.summary().lines() {
                cx.chatter(&format!("{}: {line}", self.name));
            }
        }
    }
}
