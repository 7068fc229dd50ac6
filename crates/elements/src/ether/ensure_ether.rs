//! `EnsureEther`: gives IP packets an Ethernet header if they have none.

use castanet_element::prelude::*;
use castanet_element::wire::{Ethernet, ether_type};

/// Gives IP packets an Ethernet header if they have none.
///
/// Packets without a marked network header, and those whose network header lies
/// behind an Ethernet header for IPv4 or IPv6, stay as they are. A packet whose
/// Ethernet header of this kind was stripped gets it back. All other packets
/// lose the bytes before their network header and get an Ethernet header with
/// ETHERTYPE, SRC and DST.
///
/// ```click
/// in -> EnsureEther -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp ; network 14
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 type 0x1234 hex 45 00 ; network 14
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 5 1.0.0.1 > 2.0.0.2 udp ; network 18
/// > in  hex 61 62
/// < out eth 1:1:1:1:1:1 > 2:2:2:2:2:2 1.0.0.1 > 2.0.0.2 udp ; mac 0 network 14
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 1:1:1:1:1:1 > 2:2:2:2:2:2 type 0x0800 hex 45 00
/// < out eth 1:1:1:1:1:1 > 2:2:2:2:2:2 1.0.0.1 > 2.0.0.2 udp
/// < out hex 61 62
/// ```
/// ```click
/// in -> Strip(14) -> MarkIPHeader -> EnsureEther(0x86dd, 0:0:0:0:0:3, 0:0:0:0:0:4) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 type 0x1234 hex 45 00 00 14 00 00 00 00 40 11 00 00 01 00 00 01 02 00 00 02
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp ; network 14
/// < out eth 0:0:0:0:0:3 > 0:0:0:0:0:4 type 0x86dd hex 45 00 00 14 00 00 00 00 40 11 00 00 01 00 00 01 02 00 00 02
/// ```
#[derive(Element)]
#[element(room = "ether", gives = "ether", headers = Gives(FirstHeader::Ethernet, MarkedHeader::Unknown))]
pub struct EnsureEther {
    /// Ethernet type of headers that the element makes.
    #[arg(default = 0x0800)]
    ethertype: u16,
    /// Source address of these headers; 1:1:1:1:1:1 by default.
    #[arg]
    src: Option<MacAddr>,
    /// Destination address of these headers; 2:2:2:2:2:2 by default.
    #[arg]
    dst: Option<MacAddr>,
}

/// Offset of a network header behind an Ethernet header.
const BEHIND_ETHERNET: isize = Ethernet::LEN as isize;

/// Whether the packet begins with an Ethernet header for IPv4 or IPv6.
fn begins_with_ethernet(packet: &Packet) -> bool {
    let header = Ethernet::from_prefix(packet.bytes());
    header.is_some_and(|(it, _)| matches!(it.ether_type(), ether_type::IPV4 | ether_type::IPV6))
}

impl PerPacket for EnsureEther {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn packet(&self, (): &mut (), packet: &mut Packet) {
        let Some(offset @ 0..) = packet.network_offset() else { return };
        if offset == BEHIND_ETHERNET && begins_with_ethernet(packet) {
            return;
        }
        // Only the packet's own header counts: other bytes there may be those of an earlier packet.
        if offset == 0 && packet.mac_offset() == Some(-BEHIND_ETHERNET) {
            packet.push_front(Ethernet::LEN);
            if begins_with_ethernet(packet) {
                return;
            }
            packet.pull_front(Ethernet::LEN);
        }
        packet.pull_front(offset.unsigned_abs());
        let src = self.src.unwrap_or(MacAddr([1; 6]));
        let dst = self.dst.unwrap_or(MacAddr([2; 6]));
        let header = Ethernet::new(dst, src, self.ethertype);
        packet.push_mac_header(Ethernet::LEN).copy_from_slice(header.bytes());
    }
}
