//! `GTPEncap`: prepends GTP-U headers.

use crate::ip::encap::EncapExit;
use castanet_element::prelude::*;
use castanet_element::wire::Gtp;

/// Prepends a GTP-U header to each packet.
///
/// The header is that of GTPv1-U, without a sequence number. `UDPIPEncap` with
/// port 2152 prepends the UDP and IP headers.
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
#[derive(Clone, Element)]
#[element(room = "tunnel")]
pub struct GTPEncap {
    /// Tunnel endpoint identifier (TEID).
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
        packet.push_front(Gtp::LEN).copy_from_slice(Gtp::new(self.teid, len).bytes());
        EncapExit::Encapsulated
    }
}
