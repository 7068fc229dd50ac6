//! `PaintTee`: copies packets of one colour.

use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Copies packets of one paint colour to output 1, and passes every packet to output 0.
///
/// In a router that paints packets by the interface on which they arrive, the
/// copies are those that leave by the same interface, for an ICMP redirect.
///
/// ```click
/// in -> pt :: PaintTee(7) -> out;  pt[1] -> back
/// > in   1.0.0.1 > 2.0.0.1 udp ; paint 7
/// > in   1.0.0.1 > 2.0.0.2 udp
/// < out  1.0.0.1 > 2.0.0.1 udp ; paint 7
/// < out  1.0.0.1 > 2.0.0.2 udp
/// < back 1.0.0.1 > 2.0.0.1 udp ; paint 7
/// = pt.color 7
/// ! pt.color 9
/// > in   1.0.0.1 > 2.0.0.1 udp ; paint 7
/// < out  1.0.0.1 > 2.0.0.1 udp ; paint 7
/// ```
#[derive(Clone, Element)]
#[element(room = "annotate")]
pub struct PaintTee {
    /// The colour of packets to copy.
    #[arg(live)]
    color: u8,
    /// The annotation byte with the colour.
    #[arg(default = AnnoAt(anno::PAINT))]
    anno: AnnoAt<1>,
}

#[derive(Fate)]
pub enum PaintTeeExit {
    /// Every packet.
    Onward,
    /// Copies of packets of the colour.
    Copied,
}

impl PerBatch for PaintTee {
    type On = on::Any;
    type Local = ();
    type Fate = PaintTeeExit;
    const CAN_PASS: bool = true;
    const CAN_PASS_BURST: bool = true;

    #[inline(always)]
    fn burst_effect(&self, burst: &BurstSummary) -> BurstEffect {
        let is_other = burst.paint().is_some_and(|paint| paint != self.color);
        match self.is_of_paint() && is_other {
            true => BurstEffect::Passes,
            false => BurstEffect::Keeps,
        }
    }

    #[inline]
    fn can_pass(&self, _: &mut (), packet: &mut Packet) -> bool {
        PaintTee::is_other(packet, self.anno.0, self.color)
    }

    fn native(&self) -> Option<String> {
        Some(format!("Element::is_other(packet, {}, {})", self.anno.0, self.color))
    }

    fn batch(&self, _: &mut (), _: usize, mut batch: Batch, cx: &mut Cx) {
        for packet in batch.iter_mut() {
            if self.anno.get(packet) == self.color {
                let copy = cx.copy_or_share(packet);
                cx.emit(PaintTeeExit::Copied, copy);
            }
        }
        cx.emit_batch(PaintTeeExit::Onward, batch);
    }
}

impl PaintTee {
    /// Whether the colour is the paint annotation.
    pub(crate) fn is_of_paint(&self) -> bool {
        self.anno.0 == anno::PAINT
    }

    /// Whether the paint annotation is another colour.
    #[inline(always)]
    pub(crate) fn is_not_painted(&self, packet: &Packet) -> bool {
        PaintTee::is_other(packet, anno::PAINT, self.color)
    }

    /// Whether the annotation byte `anno` is not `color`.
    #[inline(always)]
    pub fn is_other(packet: &Packet, anno: usize, color: u8) -> bool {
        AnnoAt::<1>(anno).get(packet) != color
    }
}
