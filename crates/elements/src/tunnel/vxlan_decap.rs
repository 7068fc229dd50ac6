//! `VXLANDecap`: removes VXLAN headers.

use super::network_identifier::NetworkIdentifier;
use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_element::wire::Vxlan;

/// Removes the VXLAN header from each packet, which leaves the Ethernet frame.
///
/// The packets begin with a VXLAN header (RFC 7348). The element sets the aggregate annotation to
/// the network identifier (VNI).
///
/// ```click
/// in -> d :: VXLANDecap -> out
/// > in  hex 08 00 00 00 00 00 07 00 61 62
/// > in  hex 00 00 00 00 00 00 07 00 61 62
/// > in  hex 08 00 00 00 00
/// < out hex 61 62
/// = d.drops.no_frame_inside 2
/// ```
///
/// ```click
/// in -> d :: VXLANDecap(7) -> out
/// > in  hex 08 00 00 00 00 00 07 00 61
/// > in  hex 08 00 00 00 00 00 08 00 62
/// < out hex 61
/// = d.drops.other_network 1
/// = d.vni 7
/// ! d.vni 8
/// > in  hex 08 00 00 00 00 00 08 00 62
/// < out hex 62
/// ```
#[derive(Clone, Element)]
#[element(room = "tunnel")]
pub struct VXLANDecap {
    /// The network identifier that packets have to have; without it, any.
    #[arg(live)]
    vni: Option<NetworkIdentifier>,
}

#[derive(Fate)]
pub enum VXLANDecapExit {
    /// Ethernet frames from the network.
    Frame,
    /// Packets with a truncated header, or without a valid network identifier.
    #[drop]
    NoFrameInside,
    /// Packets of another network than `VNI`.
    #[drop]
    OtherNetwork,
}

impl PerPacket for VXLANDecap {
    type On = on::Any;
    type Local = ();
    type Fate = VXLANDecapExit;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> VXLANDecapExit {
        let header = Vxlan::from_prefix(packet.bytes());
        let Some(vni) = header.and_then(|(header, _)| header.vni()) else {
            return VXLANDecapExit::NoFrameInside;
        };
        if self.vni.is_some_and(|wanted| wanted.0 != vni) {
            return VXLANDecapExit::OtherNetwork;
        }
        packet.pull_front(Vxlan::LEN);
        packet.set_anno_u32(anno::AGGREGATE, vni);
        VXLANDecapExit::Frame
    }
}
