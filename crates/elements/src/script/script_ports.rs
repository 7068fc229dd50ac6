//! Ports of a `Script` of type PACKET.

use super::script::Script;
use super::script_runner::{ScriptArgs, ScriptRunner};
use castanet_element::class::{Class, per_batch_with_program};
use castanet_element::prelude::*;

/// Lets the script choose the output of each packet. The packet goes on before the script decides
/// about the next one.
#[derive(Element)]
#[element(args = ScriptArgs, ports = "1-/-", processing = "ah/ah", headers = Pass)]
pub(super) struct ScriptPorts {
    inputs: usize,
}

/// The class of scripts with ports. The handlers that they write are known only at run time.
pub(super) static SCRIPT_PORTS: Class =
    per_batch_with_program::<ScriptPorts, ScriptRunner<Script>>()
        .with_calls(|_, _| Some(Vec::new()));

impl Build for ScriptPorts {
    type Args = ScriptArgs;

    fn build(_: ScriptArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(ScriptPorts { inputs: setup.inputs })
    }
}

/// Most packets that wait for the next pull; others are dropped.
const MOST_DECIDED: usize = 256;

/// Packets of one worker.
#[derive(Default, Local)]
pub(super) struct ScriptPortsState {
    /// Packets that were pulled and that the script has sent to output 0, until that is pulled again.
    #[portable]
    decided: Batch,
}

impl PerBatch for ScriptPorts {
    type On = on::Any;
    type Local = ScriptPortsState;
    type Fate = Port;

    fn batch(&self, state: &mut ScriptPortsState, port: usize, mut batch: Batch, cx: &mut Cx) {
        if port == self.inputs {
            cx.keep(&mut batch, || state.decided.len());
            let room = MOST_DECIDED.saturating_sub(state.decided.len()).min(batch.len());
            let excess = batch.split_off(room);
            state.decided.append(&mut batch);
            return excess.into_iter().for_each(|packet| cx.emit(Port::DROP, packet));
        }
        for packet in batch {
            cx.call_for_output("packet", &port.to_string(), packet);
        }
    }

    fn emit_decided(&self, state: &mut ScriptPortsState, n: usize, cx: &mut Cx) {
        let mut first = std::mem::take(&mut state.decided);
        state.decided = first.split_off(n.min(first.len()));
        cx.emit_batch(Port::nth(0), first);
    }

    fn held(&self, state: &ScriptPortsState) -> usize {
        state.decided.len()
    }
}
