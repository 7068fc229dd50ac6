//! `Unstrip`: bytes back to the front.

use castanet_engine::prelude::*;

/// Puts bytes in front of each packet, those that `Strip` took off if it did.
///
/// ```click
/// in -> Strip(14) -> Unstrip(14) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "edit")]
pub struct Unstrip {
    /// How many bytes, at most 65535.
    #[arg]
    length: u16,
}

impl PerPacket for Unstrip {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        packet.push_front(self.length.into());
    }
}
