//! `StripEtherVLANHeader`: removes the Ethernet header and its VLAN tag.

use super::tci::{NativeVlan, set_tci_annotation};
use castanet_element::prelude::*;
use castanet_element::wire::{Ethernet, Vlan, ether_type, vlan};

/// Removes the Ethernet header and the VLAN tag in it from each frame.
///
/// The element stores the tag in the VLAN annotation. For a frame without a
/// tag it stores NATIVE_VLAN there, 0 by default. With NATIVE_VLAN -1, frames
/// without a tag leave by output 1 unchanged, or are dropped if it is not
/// connected.
///
/// ```click
/// in -> s :: StripEtherVLANHeader(-1) -> EtherVLANEncap(0x0800, 0:0:0:0:0:3, 0:0:0:0:0:4, ANNO) -> out
/// s[1] -> plain
/// > in    eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 9 prio 3 1.0.0.1 > 2.0.0.2 udp
/// > in    eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out   eth 0:0:0:0:0:3 > 0:0:0:0:0:4 vlan 9 prio 3 1.0.0.1 > 2.0.0.2 udp
/// < plain eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// ```
/// ```click
/// in -> StripEtherVLANHeader -> EtherVLANEncap(0x0800, 0:0:0:0:0:3, 0:0:0:0:0:4, ANNO) -> out
/// > in    eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// > in    eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 0 prio 3 1.0.0.1 > 2.0.0.2 udp
/// < out   eth 0:0:0:0:0:3 > 0:0:0:0:0:4 1.0.0.1 > 2.0.0.2 udp
/// < out   eth 0:0:0:0:0:3 > 0:0:0:0:0:4 1.0.0.1 > 2.0.0.2 udp
/// ```
/// ```click
/// in -> s :: StripEtherVLANHeader(NATIVE_VLAN 7) -> EtherVLANEncap(0x0800, 0:0:0:0:0:3, 0:0:0:0:0:4, ANNO) -> out
/// > in    eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out   eth 0:0:0:0:0:3 > 0:0:0:0:0:4 vlan 7 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "vlan", processing = "a/ah", alias = "StripEtherVlanHeader", headers = StripFrame)]
pub struct StripEtherVLANHeader {
    /// VLAN ID of frames without a tag; -1 for none.
    #[arg(default = NativeVlan::ZERO, shown = "0")]
    native_vlan: NativeVlan,
}

#[derive(Fate)]
pub enum StripEtherVLANHeaderExit {
    /// Packets without their Ethernet header.
    Packet,
    /// Frames without a tag, if NATIVE_VLAN is -1.
    #[optional]
    Untagged,
}

impl PerPacket for StripEtherVLANHeader {
    type On = on::Ether;
    type Local = ();
    type Fate = StripEtherVLANHeaderExit;

    #[inline]
    fn packet(&self, (): &mut (), ether: Ether) -> StripEtherVLANHeaderExit {
        let packet = ether.into_packet();
        let tag = vlan::tag(packet.bytes(), ether_type::VLAN).map(Vlan::tci);
        let header = Ethernet::LEN + if tag.is_some() { Vlan::LEN } else { 0 };
        let Some(tci) = tag.or(self.native_vlan.id()) else {
            return StripEtherVLANHeaderExit::Untagged;
        };
        packet.set_mac_header(0);
        packet.pull_front(header);
        set_tci_annotation(packet, tci);
        StripEtherVLANHeaderExit::Packet
    }
}
