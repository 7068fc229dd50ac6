//! `Unstrip`: restores stripped bytes at the front of packets.

use castanet_element::fate::none_taken;
use castanet_element::prelude::*;

/// Restores the bytes that `Strip` removed, or adds bytes at the front of each packet.
///
/// ```click
/// in -> Strip(14) -> Unstrip(14) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "edit", headers = Unstrip)]
pub struct Unstrip {
    /// Number of bytes, at most 65535.
    #[arg]
    length: u16,
}

impl PerPacket for Unstrip {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    const BYTE_ACCESS: ByteAccess = ByteAccess::Moves;

    fn byte_length(&self) -> Option<usize> {
        Some(0)
    }

    fn handle_bytes(&self, _: &mut (), bytes: &mut BurstBytes, fates: &mut [u8]) -> u8 {
        if bytes.unstrip(self.length.into()) { 0 } else { none_taken(fates) }
    }

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        packet.push_front(self.length.into());
    }
}
