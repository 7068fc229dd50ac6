//! `StripEtherVLANHeader`: the Ethernet header off the front, with its VLAN tag.

use crate::vlan_tags::annotate;
use castanet_engine::prelude::*;
use castanet_engine::wire::{Ethernet, Vlan, ether_type, vlan};

/// Takes the Ethernet header, and the VLAN tag in it, off each frame.
///
/// The tag comes to the VLAN annotation. Frames without tag get NATIVE_VLAN_ID
/// there; without that argument they leave by output 1 as they are, or are
/// dropped.
///
/// ```click
/// in -> s :: StripEtherVLANHeader -> EtherVLANEncap(0x0800, 0:0:0:0:0:3, 0:0:0:0:0:4, ANNO) -> out
/// s[1] -> plain
/// > in    eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 9 prio 3 1.0.0.1 > 2.0.0.2 udp
/// > in    eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out   eth 0:0:0:0:0:3 > 0:0:0:0:0:4 vlan 9 prio 3 1.0.0.1 > 2.0.0.2 udp
/// < plain eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// ```
/// ```click
/// in -> s :: StripEtherVLANHeader(7) -> EtherVLANEncap(0x0800, 0:0:0:0:0:3, 0:0:0:0:0:4, ANNO) -> out
/// > in    eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out   eth 0:0:0:0:0:3 > 0:0:0:0:0:4 vlan 7 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(processing = "a/ah", alias = "StripEtherVlanHeader")]
pub struct StripEtherVLANHeader {
    /// What frames without tag count as.
    #[arg]
    native_vlan_id: Option<u16>,
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
        let Some(tci) = tag.or(self.native_vlan_id) else { return Stripped::Untagged };
        packet.set_mac_header(0);
        packet.pull_front(header);
        annotate(packet, tci);
        Stripped::Packet
    }
}
