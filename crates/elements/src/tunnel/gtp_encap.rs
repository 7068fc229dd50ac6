//! `GTPEncap`: packets into a GTP tunnel.

use crate::ip::encap::Fit;
use castanet_engine::prelude::*;
use castanet_engine::wire::Gtp;

/// Puts the header of a GTP tunnel before each packet.
///
/// It is that of version 1 of the user plane, without a sequence number; UDP and
/// IP around it are for `UDPIPEncap`, with port 2152.
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
    /// Which tunnel.
    #[arg(live)]
    teid: u32,
}

impl PerPacket for GTPEncap {
    type On = on::Any;
    type Local = ();
    type Fate = Fit;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> Fit {
        let Ok(len) = u16::try_from(packet.len()) else { return Fit::TooLong };
        packet.push_front(Gtp::LEN).copy_from_slice(Gtp::new(self.teid, len).bytes());
        Fit::Encapsulated
    }
}
