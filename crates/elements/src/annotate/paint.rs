//! `Paint`: sets the paint annotation.

use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Sets each packet's paint annotation to a colour.
///
/// ```click
/// in -> p :: Paint(7) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; paint 7
/// = p.color 7
/// ! p.color 9
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; paint 9
/// ```
///
/// ```click
/// in -> Paint(3, ANNO 18) -> Paint(4) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; paint 4
/// ```
#[derive(Clone, Element)]
#[element(room = "annotate")]
pub struct Paint {
    /// The colour to set, 0 to 255.
    #[arg(live)]
    color: u8,
    /// The annotation byte to set.
    #[arg(default = AnnoAt(anno::PAINT))]
    anno: AnnoAt<1>,
}

impl PerPacket for Paint {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    const BYTE_ACCESS: ByteAccess = ByteAccess::Moves;

    fn byte_length(&self) -> Option<usize> {
        (self.anno.0 == anno::PAINT).then_some(0)
    }

    fn handle_bytes(&self, _: &mut (), bytes: &mut BurstBytes, _: &mut [u8]) -> u8 {
        bytes.set_paint(self.color);
        0
    }

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        Paint::set(packet, self.anno.0, self.color);
    }

    fn native(&self) -> Option<String> {
        Some(format!("Element::set(packet, {}, {})", self.anno.0, self.color))
    }
}

impl Paint {
    /// Sets the annotation byte `anno`.
    #[inline(always)]
    pub fn set(packet: &mut Packet, anno: usize, color: u8) {
        AnnoAt::<1>(anno).set(packet, color);
    }
}
