//! `UnstripAnno`: bytes back to the front, as many as an annotation says.

use castanet_engine::packet::anno;
use castanet_engine::prelude::*;

/// Brings bytes back to the front that were taken off, as many as an annotation says.
///
/// The annotation, two bytes, is zero afterwards.
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
    /// The two annotation bytes that say how many.
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
