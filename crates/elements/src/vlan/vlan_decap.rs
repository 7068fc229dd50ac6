//! `VLANDecap`: removes the VLAN tag from Ethernet frames.

use super::tci::set_tci_annotation;
use castanet_element::prelude::*;
use castanet_element::wire::{Vlan, ether_type, vlan};

/// Removes the VLAN tag from each Ethernet frame that has one.
///
/// The element stores the tag in the VLAN annotation, and 0 for a frame without
/// a tag. With ANNO false it leaves the annotation unchanged.
///
/// ```click
/// in -> VLANDecap -> p :: VLANEncap(ANNO, ETHERTYPE 0x88a8) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 9 prio 3 1.0.0.1 > 2.0.0.2 udp
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 qinq 9 prio 3 1.0.0.1 > 2.0.0.2 udp ; mac 0
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// ```
/// ```click
/// in -> SetVLANAnno(7) -> VLANDecap(ANNO false) -> VLANEncap(ANNO) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 9 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 7 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "vlan")]
pub struct VLANDecap {
    /// Whether to set the VLAN annotation.
    #[arg(default = true)]
    anno: bool,
    /// Ethernet type of the tag (TPID).
    #[arg(keyword, default = ether_type::VLAN, shown = "0x8100")]
    ethertype: u16,
}

impl PerPacket for VLANDecap {
    type On = on::Ether;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), ether: Ether) {
        let packet = ether.into_packet();
        let tci = vlan::tag(packet.bytes(), self.ethertype).map(Vlan::tci);
        if tci.is_some() {
            vlan::remove(packet.bytes_mut());
            packet.pull_front(Vlan::LEN);
            packet.set_mac_header(0);
        }
        if self.anno {
            set_tci_annotation(packet, tci.unwrap_or(0));
        }
    }
}
