//! `PullTee`: copies pulled packets to further outputs.

use super::output_args::TeeArgs;
use castanet_element::prelude::*;

/// Copies every pulled packet to all other outputs.
///
/// Output 0 is pulled; the others push.
///
/// ```click
/// in -> Queue -> t :: PullTee(2) -> Unqueue -> out; t[1] -> seen
/// > in   1.0.0.1 > 2.0.0.2 udp
/// < out  1.0.0.1 > 2.0.0.2 udp
/// < seen 1.0.0.1 > 2.0.0.2 udp
/// = t.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "switch", args = TeeArgs, processing = "l/lh")]
pub struct PullTee {
    outputs: u8,
}

impl Build for PullTee {
    type Args = TeeArgs;

    fn build(args: TeeArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(PullTee { outputs: args.check(setup)? })
    }
}

impl PerBatch for PullTee {
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
