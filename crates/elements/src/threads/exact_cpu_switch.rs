//! `ExactCPUSwitch`: distributes workers evenly over its outputs.

use castanet_element::prelude::*;

/// Distributes packets by worker, with the workers spread evenly over the outputs.
///
/// It numbers only the workers whose packets reach it: the first of them sends to output 0, the
/// next one to output 1, and so on, modulo the number of outputs. The graph determines these
/// workers (`castanet explain`).
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
    /// Output of each worker.
    outputs: Vec<Port>,
}

impl Build for ExactCPUSwitch {
    type Args = ();
    fn build(_: (), setup: &Setup) -> Result<Self, ArgError> {
        let mut count = 0;
        let output = |&reaches: &bool| {
            let output = Port::nth((count % setup.outputs.max(1)) as u8);
            count += usize::from(reaches);
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
