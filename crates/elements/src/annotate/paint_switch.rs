//! `PaintSwitch`: chooses an output by paint.

use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Sends each packet to the output whose number is its paint annotation.
///
/// Packets of colour 255 go to every output. Packets whose output does not
/// exist are dropped.
///
/// ```click
/// in -> s :: PaintSwitch -> a;  s[1] -> b
/// > in 1.0.0.1 > 2.0.0.2 udp ; paint 0
/// > in 1.0.0.1 > 2.0.0.2 tcp ; paint 1
/// > in 1.0.0.1 > 2.0.0.3 udp ; paint 255
/// > in 1.0.0.1 > 2.0.0.4 udp ; paint 2
/// < a  1.0.0.1 > 2.0.0.2 udp
/// < a  1.0.0.1 > 2.0.0.3 udp
/// < b  1.0.0.1 > 2.0.0.2 tcp
/// < b  1.0.0.1 > 2.0.0.3 udp
/// = s.drops.unmatched 1
/// ```
#[derive(Element)]
#[element(room = "annotate", args = PaintSwitchArgs, ports = "1/-", processing = "h/h", alias = "ExactPaintSwitch")]
pub struct PaintSwitch {
    anno: AnnoAt<1>,
    outputs: u8,
}

#[derive(Args)]
pub struct PaintSwitchArgs {
    /// The annotation byte with the colour.
    #[arg(default = AnnoAt(anno::PAINT))]
    anno: AnnoAt<1>,
}

/// The colour of packets for every output.
const ALL: u8 = 255;

impl Build for PaintSwitch {
    type Args = PaintSwitchArgs;

    fn build(args: PaintSwitchArgs, setup: &Setup) -> Result<Self, ArgError> {
        let outputs = u8::try_from(setup.outputs).unwrap_or(u8::MAX);
        Ok(PaintSwitch { anno: args.anno, outputs })
    }
}

impl PaintSwitch {
    fn port(&self, colour: u8) -> Port {
        if colour < self.outputs { Port::nth(colour) } else { Port::DROP }
    }
}

impl PerBatch for PaintSwitch {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        let first = batch.iter().next().map_or(0, |packet| self.anno.get(packet));
        if first != ALL && batch.iter().all(|packet| self.anno.get(packet) == first) {
            return cx.emit_batch(self.port(first), batch);
        }
        for mut packet in batch {
            let colour = self.anno.get(&packet);
            if colour != ALL || self.outputs == 0 {
                cx.emit(self.port(colour), packet);
                continue;
            }
            for output in 1..self.outputs {
                let copy = cx.copy_or_share(&mut packet);
                cx.emit(Port::nth(output), copy);
            }
            cx.emit(Port::nth(0), packet);
        }
    }
}
