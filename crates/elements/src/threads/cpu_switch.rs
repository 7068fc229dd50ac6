//! `CPUSwitch`: chooses the output by worker.

use castanet_element::prelude::*;

/// Distributes packets by worker: worker n sends to output n.
///
/// If there are more workers than outputs, the number of the output is that of the worker modulo
/// the number of outputs. So two workers may share an output while another output gets no packets;
/// `ExactCPUSwitch` distributes the workers whose packets reach it evenly.
///
/// ```click
/// in -> s :: CPUSwitch -> zero;  s[1] -> one
/// > in   1.0.0.1 > 2.0.0.2 udp
/// < zero 1.0.0.1 > 2.0.0.2 udp
/// = s.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "threads", args = ())]
pub struct CPUSwitch {
    outputs: usize,
}

impl Build for CPUSwitch {
    type Args = ();
    fn build(_: (), setup: &Setup) -> Result<Self, ArgError> {
        Ok(CPUSwitch { outputs: setup.outputs.max(1) })
    }
}

impl PerBatch for CPUSwitch {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        let output = cx.worker() % self.outputs;
        cx.emit_batch(Port::nth(output as u8), batch);
    }
}
