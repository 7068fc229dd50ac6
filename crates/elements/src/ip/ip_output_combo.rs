//! `IPOutputCombo`: the last steps of a router in one.

use super::fix_ip_src::fix;
use super::ip_gw_options::{addresses, record};
use castanet_engine::prelude::*;
use castanet_kit::options::GatewayAddresses;

/// Does to packets on their way out what a router does to each.
///
/// The steps of `DropBroadcasts -> PaintTee(COLOR) -> IPGWOptions(IPADDR) ->
/// FixIPSrc(IPADDR) -> DecIPTTL -> CheckLength(MTU)`, looking at each packet
/// once; each step's error output is an output here. Fragmenting is left to
/// an `IPFragmenter` at the last.
///
/// ```click
/// in -> c :: IPOutputCombo(2, 9.9.9.9, 100) -> out
/// c[1] -> redirect;  c[2] -> malformed;  c[3] -> expired;  c[4] -> long
/// > in        1.0.0.1 > 2.0.0.2 udp ttl 9
/// > in        1.0.0.1 > 2.0.0.2 udp ttl 9 ; type broadcast
/// > in        1.0.0.1 > 2.0.0.2 proto 9 ttl 9 ; paint 2 fixipsrc 1
/// > in        1.0.0.1 > 2.0.0.2 udp ipopt 0x07070500000000
/// > in        1.0.0.1 > 2.0.0.2 udp ttl 1
/// > in        1.0.0.1 > 2.0.0.2 proto 9 ttl 9 len 101
/// < out       1.0.0.1 > 2.0.0.2 udp ttl 8
/// < redirect  1.0.0.1 > 2.0.0.2 proto 9 ttl 9
/// < out       9.9.9.9 > 2.0.0.2 proto 9 ttl 8
/// < malformed 1.0.0.1 > 2.0.0.2 udp ipopt 0x07070500000000
/// < expired   1.0.0.1 > 2.0.0.2 udp ttl 1
/// < long      1.0.0.1 > 2.0.0.2 proto 9 ttl 8 len 101
/// = c.drops.group 1
/// ```
#[derive(Element)]
#[element(room = "ip", args = Output, processing = "h/h")]
pub struct IPOutputCombo {
    color: u8,
    ipaddr: Ipv4Addr,
    own: GatewayAddresses,
    mtu: usize,
}

#[derive(Args)]
pub struct Output {
    /// The paint of packets that go back where they came from.
    #[arg]
    color: u8,
    /// This router's address on the link that packets leave by.
    #[arg]
    ipaddr: Ipv4Addr,
    /// The longest packet that the link takes.
    #[arg]
    mtu: u32,
}

#[derive(Fate)]
pub enum Way {
    /// Packets that may leave.
    Out,
    /// Copies of packets that go back where they came from, for a redirect.
    Redirect,
    /// Packets with a malformed option.
    Malformed,
    /// Packets at their last hop.
    Expired,
    /// Packets that are too long.
    Long,
    /// Link-level broadcasts and multicasts.
    #[drop]
    Group,
}

/// The fates of a burst.
#[derive(Default, Local)]
pub struct Burst {
    fates: Vec<u8>,
}

impl Build for IPOutputCombo {
    type Args = Output;
    fn build(args: Output, _: &Setup) -> Result<Self, ArgError> {
        let Output { color, ipaddr, mtu } = args;
        Ok(IPOutputCombo { color, ipaddr, own: addresses(ipaddr, &[]), mtu: mtu as usize })
    }
}

impl IPOutputCombo {
    #[inline]
    fn way(&self, packet: &mut Packet, cx: &mut Cx) -> Way {
        use PacketType::{Broadcast, Multicast};
        if matches!(packet.packet_type(), Broadcast | Multicast) {
            return Way::Group;
        }
        if packet.paint() == self.color {
            let copy = cx.share(packet);
            cx.emit(Way::Redirect, copy);
        }
        let len = packet.len();
        let Some(mut ip) = packet.ipv4() else { return Way::Malformed };
        if !record(ip.reborrow(), &self.own, cx.now()) {
            return Way::Malformed;
        }
        fix(ip.reborrow(), self.ipaddr);
        if ip.decrement_ttl().is_none() {
            return Way::Expired;
        }
        if len > self.mtu { Way::Long } else { Way::Out }
    }
}

impl PerBatch for IPOutputCombo {
    type On = on::Ipv4;
    type Local = Burst;
    type Fate = Way;

    fn batch(&self, burst: &mut Burst, _: usize, mut batch: Batch, cx: &mut Cx) {
        burst.fates.clear();
        burst.fates.extend(batch.iter_mut().map(|packet| self.way(packet, cx).index()));
        cx.route(batch, &burst.fates);
    }
}
