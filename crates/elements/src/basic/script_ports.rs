//! The ports of a `Script` that decides about packets.

use super::script::Script;
use super::scripting::Instructions;
use castanet_engine::class::{Change, Class, duplex_with_program};
use castanet_engine::prelude::*;
use std::collections::VecDeque;

/// Keeps packets until the script has decided about them, one after the other.
#[derive(Element)]
#[element(args = Instructions, ports = "1-/-", processing = "a/h")]
pub(super) struct ScriptPorts {
    /// The script's handler that is called for each packet.
    handler: String,
    outputs: usize,
}

/// The class of scripts with ports.
pub(super) static SCRIPT_PORTS: Class = duplex_with_program::<ScriptPorts, Script>();

/// Packets on their way.
#[derive(Default)]
pub(super) struct Waiting {
    undecided: VecDeque<Packet>,
    decided: VecDeque<(usize, Packet)>,
}

/// More than this means that the script does not keep up.
const MOST: usize = 4096;

/// With so many undecided no more are pulled.
const PULLED: usize = 64;

impl Local for Waiting {
    const WRITES: &'static [&'static [Change<Self>]] = &[&[Change {
        name: "decided",
        doc: "Says to which output the packet goes that has waited longest.",
        apply: Waiting::decided,
    }]];
}

impl Waiting {
    fn decided(&mut self, output: &str) -> Result<(), ArgError> {
        if let Some(packet) = self.undecided.pop_front() {
            self.decided.push_back((output.parse().unwrap_or(usize::MAX), packet));
        }
        Ok(())
    }

    fn take_in(&mut self, handler: &str, port: usize, mut batch: Batch, cx: &mut Cx) {
        cx.keep(&mut batch, || self.undecided.len() + self.decided.len());
        for packet in batch.drain() {
            if self.undecided.len() >= MOST {
                cx.emit(Port::DROP, packet);
                continue;
            }
            self.undecided.push_back(packet);
            cx.call(handler, &port.to_string());
        }
    }
}

impl Build for ScriptPorts {
    type Args = Instructions;

    fn build(_: Instructions, setup: &Setup) -> Result<Self, ArgError> {
        Ok(ScriptPorts { handler: format!("{}.packet", setup.name), outputs: setup.outputs })
    }
}

impl PerBatch for ScriptPorts {
    type On = on::Any;
    type Local = Waiting;
    type Fate = Port;
    const SHARED: bool = true;

    fn batch(&self, waiting: &mut Waiting, port: usize, batch: Batch, cx: &mut Cx) {
        waiting.take_in(&self.handler, port, batch, cx);
    }

    fn end(&self, waiting: &mut Waiting, cx: &mut Cx) {
        for packet in waiting.undecided.drain(..) {
            cx.emit(Port::DROP, packet);
        }
        for (_, packet) in waiting.decided.drain(..) {
            cx.emit(Port::DROP, packet);
        }
    }

    fn held(&self, waiting: &Waiting) -> usize {
        waiting.undecided.len() + waiting.decided.len()
    }

    fn pulls(&self, waiting: &Waiting) -> bool {
        waiting.undecided.len() < PULLED
    }
}

impl Source for ScriptPorts {
    type Local = Waiting;
    type Fate = Port;

    fn ask(&self, waiting: &mut Waiting, n: usize, cx: &mut Cx) -> Asked {
        for _ in 0..n {
            let Some((output, packet)) = waiting.decided.pop_front() else { break };
            let port = Port::new(output).filter(|_| output < self.outputs);
            cx.emit(port.unwrap_or(Port::DROP), packet);
        }
        match waiting.decided.is_empty() {
            true => Asked::Done,
            false => Asked::Again,
        }
    }
}
