//! `GTPDecap`: packets out of a GTP tunnel.

use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use castanet_engine::wire::gtp;

/// Takes the header of a GTP tunnel off each packet.
///
/// The tunnel's identifier comes to the aggregate annotation. Optional fields
/// and extension headers go too.
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
pub enum Inside {
    /// What was in the tunnel.
    Packet,
    /// Messages that are no user's packet, or cut short.
    #[drop]
    NoPacket,
}

impl PerPacket for GTPDecap {
    type On = on::Any;
    type Local = ();
    type Fate = Inside;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> Inside {
        let Some((teid, start)) = gtp::user_packet(packet.bytes()) else {
            return Inside::NoPacket;
        };
        packet.pull_front(start);
        packet.set_anno_u32(anno::AGGREGATE, teid);
        Inside::Packet
    }
}
