//! The ports of a `Script` that decides about packets.

use super::script::Script;
use super::scripting::Instructions;
use castanet_engine::class::{Class, per_batch_with_program};
use castanet_engine::prelude::*;

/// Asks the script about each packet, before it goes on and before the next one comes.
#[derive(Element)]
#[element(args = Instructions, ports = "1-/-", processing = "a/h")]
pub(super) struct ScriptPorts;

/// The class of scripts with ports. What handlers they write, they know when they run.
pub(super) static SCRIPT_PORTS: Class =
    per_batch_with_program::<ScriptPorts, Script>().with_calls(|_, _| Some(Vec::new()));

impl Build for ScriptPorts {
    type Args = Instructions;

    fn build(_: Instructions, _: &Setup) -> Result<Self, ArgError> {
        Ok(ScriptPorts)
    }
}

impl PerBatch for ScriptPorts {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    fn batch(&self, _: &mut (), port: usize, batch: Batch, cx: &mut Cx) {
        for packet in batch {
            cx.decide("packet", &port.to_string(), packet);
        }
    }
}
