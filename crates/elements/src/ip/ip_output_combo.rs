//! `IPOutputCombo`: combines the elements of a router's output path.

use super::dec_ip_ttl::{decrement_all, find_expired};
use super::fix_ip_src::fix_source;
use super::ip_gw_options::{gateway_addresses, process_options};
use castanet_element::fate::none_taken;
use castanet_element::prelude::*;
use castanet_kit::options::GatewayAddresses;

/// Processes the options, source, TTL and length of IPv4 packets on a router's output path.
///
/// The element replaces `DropBroadcasts -> PaintTee(COLOR) ->
/// IPGWOptions(IPADDR) -> FixIPSrc(IPADDR) -> DecIPTTL -> CheckLength(MTU)` and
/// accesses each packet only once. The error output of each of these elements
/// is an output here. An `IPFragmenter` at the last output fragments packets.
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
#[element(room = "ip", args = IPOutputComboArgs, processing = "h/h")]
pub struct IPOutputCombo {
    color: u8,
    ipaddr: Ipv4Addr,
    addresses: GatewayAddresses,
    mtu: usize,
}

#[derive(Args)]
pub struct IPOutputComboArgs {
    /// Paint of packets that arrived on the link that they leave by.
    #[arg]
    color: u8,
    /// Address of this router on the link that packets leave by.
    #[arg]
    ipaddr: Ipv4Addr,
    /// MTU of the link, in bytes.
    #[arg]
    mtu: u32,
}

#[derive(Fate)]
pub enum IPOutputComboExit {
    /// Packets that are ready to leave.
    Out,
    /// Copies of packets with paint COLOR, for an ICMP redirect.
    Redirect,
    /// Packets with a malformed option.
    Malformed,
    /// Packets whose TTL has expired.
    Expired,
    /// Packets longer than MTU.
    Long,
    /// Packets that arrived as link-level broadcasts or multicasts.
    #[drop]
    Group,
}

/// Exit of each packet of the burst; kept to reuse its memory.
#[derive(Default, Local)]
pub struct IPOutputComboState {
    fates: Vec<u8>,
}

impl Build for IPOutputCombo {
    type Args = IPOutputComboArgs;
    fn build(args: IPOutputComboArgs, _: &Setup) -> Result<Self, ArgError> {
        let IPOutputComboArgs { color, ipaddr, mtu } = args;
        Ok(IPOutputCombo {
            color,
            ipaddr,
            addresses: gateway_addresses(ipaddr, &[]),
            mtu: mtu as usize,
        })
    }
}

impl IPOutputCombo {
    /// Whether only the TTL of these packets, and their length, decide about them.
    fn passes(&self, burst: &BurstSummary) -> bool {
        burst.is_ipv4_without_options()
            && !burst.may_be_to_group()
            && !burst.has_fix_ip_src()
            && burst.paint().is_some_and(|paint| paint != self.color)
    }

    /// Processes a packet and returns its exit.
    #[inline]
    fn process(&self, packet: &mut Packet, cx: &mut Cx) -> IPOutputComboExit {
        use PacketType::{Broadcast, Multicast};
        if matches!(packet.packet_type(), Broadcast | Multicast) {
            return IPOutputComboExit::Group;
        }
        if packet.paint() == self.color {
            let copy = cx.copy_or_share(packet);
            cx.emit(IPOutputComboExit::Redirect, copy);
        }
        let len = packet.len();
        let Some(mut ip) = packet.ipv4() else { return IPOutputComboExit::Malformed };
        if !process_options(ip.reborrow(), &self.addresses, &cx.now()) {
            return IPOutputComboExit::Malformed;
        }
        fix_source(ip.reborrow(), self.ipaddr);
        if ip.decrement_ttl().is_none() {
            return IPOutputComboExit::Expired;
        }
        if len > self.mtu { IPOutputComboExit::Long } else { IPOutputComboExit::Out }
    }
}

impl PerBatch for IPOutputCombo {
    type On = on::Ipv4;
    type Local = IPOutputComboState;
    type Fate = IPOutputComboExit;

    const BYTE_ACCESS: ByteAccess = ByteAccess::ReadsAndWrites;

    fn byte_length(&self, _: &mut IPOutputComboState, _: Time) -> Option<usize> {
        Some(0)
    }

    fn handle_bytes(
        &self,
        _: &mut IPOutputComboState,
        bytes: &mut BurstBytes,
        fates: &mut [u8],
    ) -> u8 {
        if !self.passes(&bytes.summary()) || bytes.longest() > self.mtu {
            return none_taken(fates);
        }
        find_expired(bytes, fates, (IPOutputComboExit::Out, IPOutputComboExit::Expired))
    }

    fn write_bytes(&self, _: &mut IPOutputComboState, bytes: &mut BurstBytes) {
        decrement_all(bytes);
    }

    fn batch(&self, state: &mut IPOutputComboState, _: usize, mut batch: Batch, cx: &mut Cx) {
        state.fates.clear();
        state.fates.extend(batch.iter_mut().map(|packet| self.process(packet, cx).index()));
        cx.route(batch, &mut state.fates);
    }
}
