//! `UnstripAnno`: restores as many stripped bytes as an annotation says.

use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Restores stripped bytes at the front of each packet, as many as an annotation says.
///
/// The annotation of two bytes is set to zero.
///
/// ```click
/// in -> Search(\<0d0a>, STRIP_AFTER true) -> c :: Counter -> UnstripAnno -> out
/// > in  hex 41 42 0d 0a 43
/// < out hex 41 42 0d 0a 43
/// = c.byte_count 1
/// ```
#[derive(Element)]
#[element(room = "edit")]
pub struct UnstripAnno {
    /// The two annotation bytes with the number of bytes to restore.
    #[arg(default = AnnoAt(anno::PAINT2))]
    anno: AnnoAt<2>,
}

impl PerPacket for UnstripAnno {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let length = usize::from(packet.anno_u16(self.anno.0));
        packet.set_anno_u16(self.anno.0, 0);
        packet.push_front(length);
    }
}
