//! `StripEtherVLANHeader`: the Ethernet header off the front, with its VLAN tag.

use super::tags::{Native, annotate};
use castanet_engine::prelude::*;
use castanet_engine::wire::{Ethernet, Vlan, ether_type, vlan};

/// Takes the Ethernet header, and the VLAN tag in it, off each frame.
///
/// The tag comes to the VLAN annotation. Frames without tag get NATIVE_VLAN
/// there, 0 unless said otherwise; where it is -1 they leave by output 1 as they
/// are, or are dropped.
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
#[element(room = "vlan", processing = "a/ah", alias = "StripEtherVlanHeader")]
pub struct StripEtherVLANHeader {
    /// The VLAN of frames without tag, -1 for none.
    #[arg(default = Native::ZERO)]
    native_vlan: Native,
}

#[derive(Fate)]
pub enum Stripped {
    /// What was in frames.
    Packet,
    /// Frames without tag.
    #[optional]
    Untagged,
}

impl PerPacket for StripEtherVLANHeader {
    type On = on::Ether;
    type Local = ();
    type Fate = Stripped;

    #[inline]
    fn packet(&self, (): &mut (), ether: Ether) -> Stripped {
        let packet = ether.into_packet();
        let tag = vlan::tag(packet.bytes(), ether_type::VLAN).map(Vlan::tci);
        let header = Ethernet::LEN + if tag.is_some() { Vlan::LEN } else { 0 };
        let Some(tci) = tag.or(self.native_vlan.id()) else { return Stripped::Untagged };
        packet.set_mac_header(0);
        packet.pull_front(header);
        annotate(packet, tci);
        Stripped::Packet
    }
}
