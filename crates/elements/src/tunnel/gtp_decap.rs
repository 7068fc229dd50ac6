//! `GTPDecap`: removes GTP-U headers.

use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_element::wire::gtp;

/// Removes the GTP-U header from each packet.
///
/// The element sets the aggregate annotation to the tunnel endpoint identifier
/// (TEID). It removes the optional fields and extension headers too.
///
/// ```click
/// in -> d :: GTPDecap -> MarkIPHeader -> IPPrint(TIMESTAMP false, AGGREGATE true) -> out
/// > in  hex 30 ff 00 1c 00 00 00 07 45 00 00 1c 00 00 00 00 40 11 77 cf 01 00 00 01 02 00 00 02 00 05 00 06 00 08 fc d0
/// > in  hex 30 01 00 00 00 00 00 07
/// > in  hex 30 ff 00 09 00 00 00 07 61
/// < out 1.0.0.1:5 > 2.0.0.2:6 udp
/// ~ #7: 1.0.0.1.5 > 2.0.0.2.6: udp 8
/// = d.drops.no_packet 2
/// ```
#[derive(Element)]
#[element(room = "tunnel")]
pub struct GTPDecap;

#[derive(Fate)]
pub enum GTPDecapExit {
    /// User packets from the tunnel.
    Packet,
    /// Messages that contain no user packet, and truncated packets.
    #[drop]
    NoPacket,
}

impl PerPacket for GTPDecap {
    type On = on::Any;
    type Local = ();
    type Fate = GTPDecapExit;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> GTPDecapExit {
        let Some((teid, start)) = gtp::user_packet(packet.bytes()) else {
            return GTPDecapExit::NoPacket;
        };
        packet.pull_front(start);
        packet.set_anno_u32(anno::AGGREGATE, teid);
        GTPDecapExit::Packet
    }
}
