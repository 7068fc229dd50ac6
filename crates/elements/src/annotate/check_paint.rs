//! `CheckPaint`: filters packets by paint.

use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Filters packets by paint annotation: passes one colour, other colours leave by output 1.
///
/// They are dropped if output 1 is not connected.
///
/// ```click
/// in -> c :: CheckPaint(7) -> out;  c[1] -> others
/// > in     1.0.0.1 > 2.0.0.2 udp ; paint 7
/// > in     1.0.0.1 > 2.0.0.2 udp ; paint 8
/// < out    1.0.0.1 > 2.0.0.2 udp ; paint 7
/// < others 1.0.0.1 > 2.0.0.2 udp ; paint 8
/// ! c.color 8
/// = c.color 8
/// ```
///
/// ```click
/// in -> c :: CheckPaint(7, ANNO PAINT) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp ; paint 8
/// = c.drops.other 1
/// ```
#[derive(Clone, Element)]
#[element(room = "annotate")]
pub struct CheckPaint {
    /// The colour of packets to pass.
    #[arg(live)]
    color: u8,
    /// The annotation byte with the colour.
    #[arg(default = AnnoAt(anno::PAINT))]
    anno: AnnoAt<1>,
}

#[derive(Fate)]
pub enum CheckPaintExit {
    /// Packets of the colour.
    Same,
    /// Packets of another colour.
    #[optional]
    Other,
}

impl PerPacket for CheckPaint {
    type On = on::Any;
    type Local = ();
    type Fate = CheckPaintExit;

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> CheckPaintExit {
        match self.anno.get(packet) == self.color {
            true => CheckPaintExit::Same,
            false => CheckPaintExit::Other,
        }
    }
}
