//! `ExactCPUSwitch`: an output by worker, evenly.

use castanet_engine::prelude::*;

/// Spreads the workers whose packets come here evenly over the outputs.
///
/// The first of them has output 0, the next output 1, and so on round. Which
/// workers that are is known from the graph (`castanet explain`).
///
/// ```click
/// in -> s :: ExactCPUSwitch -> zero;  s[1] -> one
/// > in   1.0.0.1 > 2.0.0.2 udp
/// < zero 1.0.0.1 > 2.0.0.2 udp
/// = s.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "threads", args = ())]
pub struct ExactCPUSwitch {
    /// By worker: its output.
    outputs: Vec<Port>,
}

impl Build for ExactCPUSwitch {
    type Args = ();
    fn build(_: (), setup: &Setup) -> Result<Self, ArgError> {
        let mut reached = 0;
        let output = |&comes: &bool| {
            let output = Port::nth((reached % setup.outputs.max(1)) as u8);
            reached += usize::from(comes);
            output
        };
        Ok(ExactCPUSwitch { outputs: setup.workers.iter().map(output).collect() })
    }
}

impl PerBatch for ExactCPUSwitch {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        let output = self.outputs.get(cx.worker()).copied().unwrap_or(Port::DROP);
        cx.emit_batch(output, batch);
    }
}
