//! `Strip`: bytes off the front.

use castanet_engine::prelude::*;

/// Takes bytes off the front of each packet.
///
/// They stay where they are, as headroom, and `Unstrip` brings them back.
/// Of a shorter packet nothing is left.
///
/// ```click
/// in -> Strip(14) -> MarkIPHeader -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; mac -14
/// ```
///
/// ```click
/// in -> Strip(14) -> out
/// > in  hex 01 02 03
/// < out hex ; length 0
/// ```
#[derive(Element)]
#[element(room = "edit")]
pub struct Strip {
    /// How many bytes.
    #[arg]
    length: u32,
}

impl PerPacket for Strip {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        if !packet.pull_front(self.length as usize) {
            let all = packet.len();
            packet.pull_front(all);
        }
    }
}
