//! `GTPEncap`: prepends GTP-U headers.

use crate::ip::encap::EncapExit;
use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_element::wire::Gtp;

/// Prepends a GTP-U header to each packet.
///
/// The header is that of GTPv1-U, without a sequence number. `UDPIPEncap` with
/// port 2152 prepends the UDP and IP headers. With TEID 0 the identifier is the packet's
/// aggregate annotation.
///
/// ```click
/// in -> e :: GTPEncap(7) -> out
/// > in  hex 61 62
/// < out hex 30 ff 00 02 00 00 00 07 61 62
/// ! e.teid 258
/// = e.teid 258
/// > in  hex 61
/// < out hex 30 ff 00 01 00 00 01 02 61
/// > in  1.0.0.1 > 2.0.0.2 udp len 65535 pad 1
/// = e.drops.too_long 1
/// ```
///
/// ```click
/// in -> AggregateLength -> GTPEncap(0) -> out
/// > in  hex 61 62
/// < out hex 30 ff 00 02 00 00 00 02 61 62
/// ```
#[derive(Clone, Element)]
#[element(room = "tunnel")]
pub struct GTPEncap {
    /// Tunnel endpoint identifier (TEID); 0 for the aggregate annotation.
    #[arg(live)]
    teid: u32,
}

impl PerPacket for GTPEncap {
    type On = on::Any;
    type Local = ();
    type Fate = EncapExit;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> EncapExit {
        let Ok(len) = u16::try_from(packet.len()) else { return EncapExit::TooLong };
        let teid = if self.teid == 0 { packet.anno_u32(anno::AGGREGATE) } else { self.teid };
        packet.push_front(Gtp::LEN).copy_from_slice(Gtp::new(teid, len).bytes());
        EncapExit::Encapsulated
    }
}
