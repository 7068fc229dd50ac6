//! The pings of an `ICMPPingSource`: made, answered and counted.

use castanet_engine::prelude::*;
use castanet_engine::wire::{Icmp, Ipv4Header, icmp, ip_proto};
use castanet_kit::ping::{self, Pings};

#[derive(Clone, Args)]
pub struct Fields {
    /// Who asks.
    #[arg]
    pub(crate) src: Ipv4Addr,
    /// Who is asked.
    #[arg]
    pub(crate) dst: Ipv4Addr,
    /// Time from ping to ping.
    #[arg(keyword, default = Duration::from_secs(1))]
    pub(crate) interval: Duration,
    /// The identifier of the pings.
    #[arg(keyword, default = 0)]
    pub(crate) identifier: u16,
    /// What they carry.
    #[arg(keyword, default = Data(Vec::new()))]
    pub(crate) data: Data,
    /// How many to send; no limit if negative.
    #[arg(keyword, default = -1)]
    pub(crate) limit: i64,
    /// Whether to send any.
    #[arg(keyword, default = true)]
    pub(crate) active: bool,
    /// Whether to report each reply, and at the end all.
    #[arg(keyword, default = true)]
    pub(crate) verbose: bool,
}

impl Fields {
    /// Sends a ping; whether there was a frame for it.
    pub(crate) fn ping(&self, pings: &mut Pinged, cx: &mut Cx) -> bool {
        let Fields { src, dst, identifier, data, .. } = self;
        let headers = Ipv4Header::LEN + Icmp::LEN;
        let Some(mut packet) = cx.copy_in_after(headers, &data.0) else { return false };
        // No packet has number 0.
        let seq = (pings.pings.count() % u64::from(u16::MAX)) as u16 + 1;
        let mut echo = Icmp([0; Icmp::LEN]);
        echo.set_kind(icmp::ECHO);
        echo.set_id(*identifier);
        echo.set_seq(seq);
        echo.update_checksum(&data.0);
        let total = (headers + data.0.len()) as u16;
        let mut ip = Ipv4Header::new(ip_proto::ICMP, *src, *dst, total);
        ip.set_id(seq);
        ip.set_ttl(200);
        ip.update_checksum(&[]);
        packet.push_front(Icmp::LEN).copy_from_slice(echo.bytes());
        packet.push_front(Ipv4Header::LEN).copy_from_slice(ip.bytes());
        packet.set_network_header(0, Ipv4Header::LEN);
        packet.set_dst(*dst);
        packet.set_timestamp(cx.now().0);
        pings.pings.record_sent(seq, cx.now().nanos());
        cx.emit((), packet);
        true
    }

    /// Notes a reply, and says so.
    pub(crate) fn reply(&self, name: &str, pings: &mut Pinged, packet: &Packet, cx: &mut Cx) {
        let (Some(ip), Some(reply)) = (packet.ipv4_header(), packet.icmp_header()) else { return };
        if reply.kind() != icmp::ECHO_REPLY || reply.id() != self.identifier {
            return;
        }
        let received = u64::try_from(packet.timestamp()).ok().filter(|&at| at > 0);
        let at = received.unwrap_or_else(|| cx.now().nanos());
        let Some(took) = pings.pings.record_reply(reply.seq(), at) else { return };
        if self.verbose {
            let headers = ip.header_len() + Icmp::LEN;
            let bytes = usize::from(ip.total_len()).saturating_sub(headers);
            let (src, seq, ttl) = (ip.src(), reply.seq(), ip.ttl());
            let (ms, us) = (took / 1000, took % 1000);
            let times = format!("icmp_seq={seq} ttl={ttl} time={ms}.{us:03} ms");
            cx.chatter(&format!("{name}: {bytes} bytes from {src}: {times}"));
        }
    }
}

/// What has been sent and answered, and when the next ping is due.
#[derive(Default, Local)]
#[local(methods)]
pub struct Pinged {
    pub(crate) pings: Pings,
    pub(crate) next: Option<Time>,
}

#[handlers]
impl Pinged {
    /// Pings sent.
    #[read]
    fn count(&self) -> u64 {
        self.pings.count()
    }
    /// What ping says at its end.
    #[read]
    fn summary(&self) -> String {
        self.pings.summary()
    }
    /// The shortest time until a reply, in seconds.
    #[read]
    fn rtt_min(&self) -> String {
        ping::seconds(self.pings.min())
    }
    /// The mean time until a reply, in seconds.
    #[read]
    fn rtt_avg(&self) -> String {
        ping::seconds(self.pings.mean())
    }
    /// The longest time until a reply, in seconds.
    #[read]
    fn rtt_max(&self) -> String {
        ping::seconds(self.pings.max())
    }
    /// Counts from zero again.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.pings = Pings::default();
        Ok(())
    }
}
