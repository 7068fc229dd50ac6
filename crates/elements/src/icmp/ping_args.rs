//! Arguments and state of `ICMPPingSource`: its requests, replies and counters.

use castanet_element::prelude::*;
use castanet_element::wire::{Icmp, Ipv4Header, icmp, ip_proto};
use castanet_kit::ping::{self, Pings};

#[derive(Clone, Args)]
pub struct ICMPPingSourceArgs {
    /// Source address.
    #[arg]
    pub(crate) src: Ipv4Addr,
    /// Destination address.
    #[arg]
    pub(crate) dst: Ipv4Addr,
    /// Time between requests.
    #[arg(keyword, default = Duration::from_secs(1))]
    pub(crate) interval: Duration,
    /// Identifier of the echo requests.
    #[arg(keyword, default = 0)]
    pub(crate) identifier: u16,
    /// Payload of the requests.
    #[arg(keyword, default = Data(Vec::new()))]
    pub(crate) data: Data,
    /// Maximum number of requests; a negative number means no limit.
    #[arg(keyword, default = -1)]
    pub(crate) limit: i64,
    /// Whether the element sends requests.
    #[arg(keyword, default = true)]
    pub(crate) active: bool,
    /// Whether to stop the router after the last request.
    #[arg(keyword, default = false)]
    pub(crate) stop: bool,
    /// Whether to report each reply, and a summary at the end.
    #[arg(keyword, default = true)]
    pub(crate) verbose: bool,
    /// Whether each reply also becomes a request, unless the output is pull.
    #[arg(keyword, default = false)]
    pub(crate) mirror: bool,
}

impl ICMPPingSourceArgs {
    /// Sends a request. Returns false if the pool has no buffer for it.
    pub(crate) fn send_ping(&self, state: &mut ICMPPingSourceState, cx: &mut Cx) -> bool {
        let headers_len = Ipv4Header::LEN + Icmp::LEN;
        let Some(packet) = cx.copy_in_after(headers_len, &self.data.0) else { return false };
        self.send_ping_with(packet, state, cx);
        true
    }

    /// Takes a packet of the input: records a reply, and with MIRROR sends it back as a request.
    pub(crate) fn take_reply(
        &self,
        name: &str,
        state: &mut ICMPPingSourceState,
        packet: Packet,
        cx: &mut Cx,
    ) {
        match self.record_reply(name, state, &packet, cx) && self.mirror && !state.is_pulled {
            true => self.send_back(packet, state, cx),
            false => cx.consume(packet.into()),
        }
    }

    /// Sends the packet of a reply back as a request with the same data.
    fn send_back(&self, mut packet: Packet, state: &mut ICMPPingSourceState, cx: &mut Cx) {
        let start = packet.transport_offset().and_then(|offset| usize::try_from(offset).ok());
        match start.is_some_and(|start| packet.pull_front(start + Icmp::LEN)) {
            true => self.send_ping_with(packet, state, cx),
            false => cx.consume(packet.into()),
        }
    }

    /// Sends a request with the data in `packet`.
    fn send_ping_with(&self, mut packet: Packet, state: &mut ICMPPingSourceState, cx: &mut Cx) {
        let ICMPPingSourceArgs { src, dst, identifier, .. } = self;
        // Sequence numbers are never 0.
        let seq = (state.pings.count() % u64::from(u16::MAX)) as u16 + 1;
        let mut echo = Icmp([0; Icmp::LEN]);
        echo.set_kind(icmp::ECHO);
        echo.set_id(*identifier);
        echo.set_seq(seq);
        echo.update_checksum(packet.bytes());
        let total = (Ipv4Header::LEN + Icmp::LEN + packet.len()) as u16;
        let mut ip = Ipv4Header::new(ip_proto::ICMP, *src, *dst, total);
        ip.set_id(seq);
        ip.set_ttl(200);
        ip.update_checksum(&[]);
        packet.push_front(Icmp::LEN).copy_from_slice(echo.bytes());
        packet.push_front(Ipv4Header::LEN).copy_from_slice(ip.bytes());
        packet.set_network_header(0, Ipv4Header::LEN);
        packet.set_dst(*dst);
        packet.set_timestamp(cx.now().0);
        state.pings.record_sent(seq, cx.now().nanos());
        if self.stop && u64::try_from(self.limit).is_ok_and(|limit| state.pings.count() >= limit) {
            cx.stop();
        }
        cx.emit((), packet);
    }

    /// Records a reply to one of the element's requests, and reports it if VERBOSE is true. Returns
    /// whether the packet is a reply to this element.
    fn record_reply(
        &self,
        name: &str,
        state: &mut ICMPPingSourceState,
        packet: &Packet,
        cx: &mut Cx,
    ) -> bool {
        let (Some(ip), Some(echo_reply)) = (packet.ipv4_header(), packet.icmp_header()) else {
            return false;
        };
        if echo_reply.kind() != icmp::ECHO_REPLY || echo_reply.id() != self.identifier {
            return false;
        }
        let received = u64::try_from(packet.timestamp()).ok().filter(|&at| at > 0);
        let at = received.unwrap_or_else(|| cx.now().nanos());
        let Some(rtt) = state.pings.record_reply(echo_reply.seq(), at) else { return true };
        if self.verbose {
            let headers_len = ip.header_len() + Icmp::LEN;
            let bytes = usize::from(ip.total_len()).saturating_sub(headers_len);
            let (src, seq, ttl) = (ip.src(), echo_reply.seq(), ip.ttl());
            let (ms, us) = (rtt / 1000, rtt % 1000);
            let times = format!("icmp_seq={seq} ttl={ttl} time={ms}.{us:03} ms");
            cx.chatter(&format!("{name}: {bytes} bytes from {src}: {times}"));
        }
        true
    }
}

/// Requests and replies so far, and the time of the next request.
#[derive(Default, Local)]
#[local(methods)]
pub struct ICMPPingSourceState {
    pub(crate) pings: Pings,
    pub(crate) next: Option<Time>,
    /// Whether the output is pull.
    pub(crate) is_pulled: bool,
}

#[handlers]
impl ICMPPingSourceState {
    /// Number of requests sent.
    #[read]
    fn count(&self) -> u64 {
        self.pings.count()
    }
    /// Summary of requests, replies and round-trip times, as `ping` prints it at its end.
    #[read]
    fn summary(&self) -> String {
        self.pings.summary()
    }
    /// Minimum round-trip time, in seconds.
    #[read]
    fn rtt_min(&self) -> String {
        ping::seconds(self.pings.min())
    }
    /// Mean round-trip time, in seconds.
    #[read]
    fn rtt_avg(&self) -> String {
        ping::seconds(self.pings.mean())
    }
    /// Maximum round-trip time, in seconds.
    #[read]
    fn rtt_max(&self) -> String {
        ping::seconds(self.pings.max())
    }
    /// Resets all counters.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.pings = Pings::default();
        Ok(())
    }
}
