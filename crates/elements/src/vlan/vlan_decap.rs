//! `VLANDecap`: frames without their VLAN tag.

use super::tags::annotate;
use castanet_engine::prelude::*;
use castanet_engine::wire::{Vlan, ether_type, vlan};

/// Takes the VLAN tag out of each Ethernet frame that has one.
///
/// The tag comes to the VLAN annotation, 0 where there was none, unless ANNO is
/// false.
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
    /// Whether to set the annotation.
    #[arg(default = true)]
    anno: bool,
    /// The type that says that a tag follows.
    #[arg(keyword, default = ether_type::VLAN)]
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
            annotate(packet, tci.unwrap_or(0));
        }
    }
}
