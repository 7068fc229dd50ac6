//! Ports of a `Script` of type PACKET.

use super::script::Script;
use super::script_runner::{ScriptArgs, ScriptRunner};
use castanet_element::class::{Class, per_batch_with_program};
use castanet_element::prelude::*;

/// Lets the script choose the output of each packet. The packet goes on before the script decides
/// about the next one.
#[derive(Element)]
#[element(args = ScriptArgs, ports = "1-/-", processing = "a/h", headers = Pass)]
pub(super) struct ScriptPorts;

/// The class of scripts with ports. The handlers that they write are known only at run time.
pub(super) static SCRIPT_PORTS: Class =
    per_batch_with_program::<ScriptPorts, ScriptRunner<Script>>()
        .with_calls(|_, _| Some(Vec::new()));

impl Build for ScriptPorts {
    type Args = ScriptArgs;

    fn build(_: ScriptArgs, _: &Setup) -> Result<Self, ArgError> {
        Ok(ScriptPorts)
    }
}

impl PerBatch for ScriptPorts {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    fn batch(&self, _: &mut (), port: usize, batch: Batch, cx: &mut Cx) {
        for packet in batch {
            cx.call_for_output("packet", &port.to_string(), packet);
        }
    }
}
