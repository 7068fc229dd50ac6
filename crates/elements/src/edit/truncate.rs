//! `Truncate`: no more than so many bytes.

use castanet_engine::packet::anno::EXTRA_LENGTH;
use castanet_engine::prelude::*;

/// Takes off the back of each packet what is beyond a length.
///
/// How much that was is remembered in the extra length annotation, unless
/// told not to.
///
/// ```click
/// in -> t :: Truncate(4) -> out
/// > in  hex 01 02 03 04 05 06
/// > in  hex 01 02
/// < out hex 01 02 03 04 ; length 4
/// < out hex 01 02
/// = t.nbytes 4
/// ```
///
/// ```click
/// in -> Truncate(4, EXTRA_LENGTH true) -> c :: CheckLength(6, EXTRA_LENGTH true) -> out
/// > in  hex 01 02 03 04 05 06
/// > in  hex 01 02 03 04 05 06 07
/// < out hex 01 02 03 04
/// = c.drops.too_long 1
/// ```
#[derive(Element)]
#[element(room = "edit", methods)]
pub struct Truncate {
    /// How many bytes may stay.
    #[arg]
    length: u32,
    /// Whether to add what was cut off to the extra length annotation.
    #[arg(keyword, default = true)]
    extra_length: bool,
}

#[handlers]
impl Truncate {
    /// How many bytes may stay.
    #[read]
    fn nbytes(&self) -> String {
        self.length.to_string()
    }
}

impl PerPacket for Truncate {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let most = self.length as usize;
        if packet.len() <= most {
            return;
        }
        if self.extra_length {
            let extra = packet.anno_u32(EXTRA_LENGTH).saturating_add((packet.len() - most) as u32);
            packet.set_anno_u32(EXTRA_LENGTH, extra);
        }
        packet.truncate(most);
    }
}
