//! `WasmElement`: runs a WebAssembly module on batches of packets.

use crate::abi::{READ, WRITE};
use crate::args::WasmElementArgs;
use crate::engine::{Limits, Meter, Module};
use crate::exit::WasmExit;
use crate::interface::ModuleInterface;
use crate::state::{ModuleSetup, WasmState};
use castanet_element::prelude::*;
use std::sync::Arc;

/// Runs an untrusted WebAssembly module on batches of packets.
///
/// The module decides about each packet: by which output it leaves, or for which of the module's own reasons
/// it is dropped. It sees the first bytes of packets, as many as it asks for, and may change them, remove or
/// add bytes at the front and at the end, and change the annotations paint and destination. `docs/wasm.md`
/// describes how modules are written in C and in Rust; `sdk/wasm` has examples, which are compiled in
/// `sdk/wasm/modules`.
///
/// Each worker has an instance of the module with a memory of its own. Counters that the module declares are
/// read handlers, which add up over the workers, and so are its other handlers, whose text is that of
/// one worker; a write reaches all workers. A hot swap keeps the instance if the file has the same bytes and
/// the configuration is the same or the module takes another one.
///
/// A module cannot harm the rest: it reaches nothing but its own memory. A trap, more instructions than LIMIT
/// in one batch, or an answer that makes no sense costs the packets of that batch and the module's state;
/// after three such faults in a row the module is cut off, first for 100 ms, and for twice as long after
/// each further one. A module that is malformed or does not have the right functions is refused.
///
/// The element is there in programs that were built with `--features wasm`.
///
/// ```click
/// in -> CheckIPHeader -> ttl :: WasmElement(ttl.wasm) -> out;  ttl[1] -> expired
/// > in      1.0.0.1 > 2.0.0.2 udp ttl 64
/// < out     1.0.0.1 > 2.0.0.2 udp ttl 63
/// = ttl.batches 1
/// = ttl.decremented 1
/// = ttl.counters 1\tdecremented
/// = ttl.faults 0
/// > in      1.0.0.1 > 2.0.0.2 udp ttl 1
/// < expired 1.0.0.1 > 2.0.0.2 udp ttl 1
/// ```
///
/// Reasons to drop have the module's names.
///
/// ```click
/// in -> CheckIPHeader -> f :: WasmElement(firewall.wasm, 22, 80) -> out
/// > in  1.0.0.1:99 > 2.0.0.2:22 tcp
/// > in  1.0.0.1:99 > 2.0.0.2:443 tcp
/// < out 1.0.0.1:99 > 2.0.0.2:443 tcp
/// = f.drops.denied_port 1
/// = f.denied 1
/// = f.denied_ports 22\n80
/// ! f.deny 443
/// > in  1.0.0.1:99 > 2.0.0.2:443 tcp
/// = f.drops.denied_port 2
/// ! f.reset
/// = f.denied 0
/// ```
///
/// Faults of a module cost batches. The module `faulty.wasm` traps at packets with paint 1, never ends at
/// those with paint 2, and sends those with paint 3 to output 77.
///
/// ```click
/// in -> Queue -> Unqueue -> f :: WasmElement(faulty.wasm) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp ; paint 1
/// = f.drops.trap 1
/// ~ f :: WasmElement: the module trapped: wasm `unreachable` instruction executed; the module begins anew
/// > in  1.0.0.1 > 2.0.0.2 udp ; paint 2
/// = f.drops.limit 1
/// ~ f :: WasmElement: the module reached a limit: 1000000 instructions in one call; the module begins anew
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// > in  1.0.0.1 > 2.0.0.2 udp ; paint 3
/// = f.drops.bad_answer 1
/// ~ f :: WasmElement: the module's answer is malformed: an output that is not connected; the module begins anew
/// ~ f :: WasmElement: the module is cut off after faults in a row, for 100 ms first, and twice as long after each further one
/// > in  1.0.0.1 > 2.0.0.2 udp
/// = f.drops.cut_off 1
/// + 0.2s
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = f.faults 3
/// ```
#[derive(Element)]
#[element(args = WasmElementArgs, ports = "1-/-", processing = "h/h")]
pub struct WasmElement {
    setup: ModuleSetup,
    interface: ModuleInterface,
    outputs: usize,
}

impl Build for WasmElement {
    type Args = WasmElementArgs;

    fn build(args: WasmElementArgs, setup: &Setup) -> Result<Self, ArgError> {
        let refused = |why: String| ArgError::new(format!("{} {why}", args.file)).at("FILE");
        let limits = Limits {
            instructions: args.limit,
            memory: usize::try_from(args.memory * 1024).unwrap_or(usize::MAX),
            meter: Meter::Fuel,
        };
        let bytes = std::fs::read(&args.file).map_err(|it| ArgError::of_file(&args.file, &it))?;
        let module = Arc::new(Module::compile(&bytes, limits).map_err(refused)?);
        let configuration: Arc<str> = args.configuration.join("\n").into();
        // Whether the module can be initialised is known before packets flow.
        let trial = module.instantiate(&configuration, setup.started).map_err(refused)?;
        let interface = trial.interface().clone();
        let setup_of_module =
            ModuleSetup { file: args.file, module, configuration, started: setup.started };
        Ok(WasmElement { setup: setup_of_module, interface, outputs: setup.outputs })
    }
}

impl PerBatch for WasmElement {
    type On = on::Any;
    type Local = WasmState;
    type Fate = WasmExit;

    fn batch(&self, state: &mut WasmState, port: usize, batch: Batch, cx: &mut Cx) {
        state.route(&self.setup, self.outputs, port, batch, cx);
    }

    fn apply_config(&self, state: &mut WasmState) {
        state.follow(&self.setup, &self.interface);
    }

    fn can_take_state(&self, before: &Self) -> bool {
        self.setup.continues(&before.setup)
    }

    fn declarations(&self) -> ElementDeclarations {
        ElementDeclarations {
            reasons: self.interface.loss_reasons(),
            reads: self.interface.handler_names(READ),
            writes: self.interface.handler_names(WRITE),
        }
    }

    fn read_declared(
        &self,
        state: &mut WasmState,
        name: &str,
        request: &ReadRequest,
    ) -> Option<Value> {
        state.read(&self.setup, &self.interface, name, request.now)
    }

    fn write_declared(
        &self,
        state: &mut WasmState,
        name: &str,
        text: &str,
    ) -> Option<Result<(), ArgError>> {
        state.write(&self.setup, &self.interface, name, text)
    }
}
