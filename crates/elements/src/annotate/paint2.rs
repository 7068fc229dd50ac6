//! `Paint2`: sets the two-byte paint annotation.

use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Sets each packet's second paint annotation, of two bytes, to a colour.
///
/// The second paint annotation occupies the same bytes as the packet counts of
/// `FromIPSummaryDump` (`EXTRA_PACKETS`).
///
/// ```click
/// in -> p :: Paint2(300) -> c :: AggregateCounter -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = c.count 301
/// = p.color 300
/// ! p.color 9
/// = p.color 9
/// ```
#[derive(Clone, Element)]
#[element(room = "annotate")]
pub struct Paint2 {
    /// The colour to set, 0 to 65535.
    #[arg(live)]
    color: u16,
    /// The two annotation bytes to set.
    #[arg(default = AnnoAt(anno::PAINT2))]
    anno: AnnoAt<2>,
}

impl PerPacket for Paint2 {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        packet.set_anno_u16(self.anno.0, self.color);
    }
}
