//! `UnstripIPHeader`: restores a stripped IP header.

use castanet_element::prelude::*;

/// Restores the stripped IP header of each packet.
///
/// Packets whose IP header was not stripped or not marked stay as they are.
///
/// ```click
/// in -> StripIPHeader -> UnstripIPHeader -> out
/// > in  1.0.0.1 > 2.0.0.2 proto 9 ipopt 0x01010100 data 616263
/// < out 1.0.0.1 > 2.0.0.2 proto 9 ipopt 0x01010100 data 616263 ; network 0
/// ```
/// ```click
/// in -> UnstripIPHeader -> out
/// > in  hex 61
/// < out hex 61
/// ```
#[derive(Element)]
#[element(room = "ip", headers = Unknown)]
pub struct UnstripIPHeader;

impl PerPacket for UnstripIPHeader {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        if let Some(offset @ ..0) = packet.network_offset() {
            packet.push_front(offset.unsigned_abs());
        }
    }
}
