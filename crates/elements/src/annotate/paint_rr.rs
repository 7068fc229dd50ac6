//! `PaintRR`: chooses an output by paint, modulo the number of outputs.

use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Sends each packet to the output whose number is its paint, modulo the number of outputs.
///
/// ```click
/// in -> s :: PaintRR -> a;  s[1] -> b;  s[2] -> c
/// > in 1.0.0.1 > 2.0.0.2 udp ; paint 3
/// > in 1.0.0.2 > 2.0.0.2 udp ; paint 4
/// > in 1.0.0.3 > 2.0.0.2 udp ; paint 255
/// > in 1.0.0.4 > 2.0.0.2 udp ; paint 2
/// < a  1.0.0.1 > 2.0.0.2 udp ; paint 3
/// < b  1.0.0.2 > 2.0.0.2 udp ; paint 4
/// < a  1.0.0.3 > 2.0.0.2 udp ; paint 255
/// < c  1.0.0.4 > 2.0.0.2 udp ; paint 2
/// = s.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "annotate", args = PaintRRArgs)]
pub struct PaintRR {
    anno: AnnoAt<1>,
    outputs: u8,
}

#[derive(Args)]
pub struct PaintRRArgs {
    /// The annotation byte with the colour.
    #[arg(default = AnnoAt(anno::PAINT))]
    anno: AnnoAt<1>,
}

impl Build for PaintRR {
    type Args = PaintRRArgs;

    fn build(args: PaintRRArgs, setup: &Setup) -> Result<Self, ArgError> {
        let outputs = setup.outputs.clamp(1, u8::MAX.into()) as u8;
        Ok(PaintRR { anno: args.anno, outputs })
    }
}

impl PerPacket for PaintRR {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> Port {
        Port::nth(self.anno.get(packet) % self.outputs)
    }
}
