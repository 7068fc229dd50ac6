//! `Tee`: copies packets to all outputs.

use super::output_args::TeeArgs;
use castanet_element::prelude::*;

/// Copies every packet to all outputs.
///
/// Copies share the bytes of the packet until an element writes to one of them.
///
/// ```click
/// in -> t :: Tee(2) -> a;  t[1] -> b
/// > in 1.0.0.1 > 2.0.0.2 udp
/// < a  1.0.0.1 > 2.0.0.2 udp
/// < b  1.0.0.1 > 2.0.0.2 udp
/// = t.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "switch", args = TeeArgs, processing = "h/h", alias = "Duplicate")]
pub struct Tee {
    outputs: u8,
}

impl Build for Tee {
    type Args = TeeArgs;

    fn build(args: TeeArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(Tee { outputs: args.check(setup)? })
    }
}

impl PerBatch for Tee {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    fn batch(&self, _: &mut (), _: usize, mut batch: Batch, cx: &mut Cx) {
        for output in 1..self.outputs {
            let copies = batch.iter_mut().map(|packet| cx.share(packet)).collect();
            cx.emit_batch(Port::nth(output), copies);
        }
        cx.emit_batch(Port::nth(0), batch);
    }
}
