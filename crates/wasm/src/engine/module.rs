//! Compiled modules: what is refused while configuring.

use super::imports::{self, HostState};
use super::instance::ModuleInstance;
use super::scan;
use castanet_element::memory::in_words;
use castanet_element::time::Time;
use std::sync::Arc;
use wasmtime::{Config, Engine, ExternType, FuncType, InstancePre, Linker, ValType};

/// Most bytes of a module's file: it is compiled on the control thread.
pub(super) const MOST_BYTES: usize = 4 << 20;
/// Bytes of stack of a call.
const STACK: usize = 128 << 10;

/// Limits of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions of one call.
    pub instructions: u64,
    /// Bytes of memory.
    pub memory: usize,
    /// How the time of a call is limited.
    pub meter: Meter,
}

/// How the time of a call is limited. Elements count instructions; `castanet bench wasm` compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meter {
    /// By counting instructions: the same on every machine and in every run.
    Fuel,
    /// By looking at a counter that another thread would move on.
    Epoch,
    /// Not at all.
    Unlimited,
}

/// A compiled module whose exports have been found right.
pub struct Module {
    bytes: Arc<[u8]>,
    pub(super) limits: Limits,
    pub(super) prepared: InstancePre<HostState>,
}

/// Name of a function that modules export, with the numbers of its parameters and results, and whether it
/// must be there. All are 32-bit integers.
const FUNCTIONS: &[(&str, usize, usize, bool)] = &[
    ("castanet_abi_version", 0, 1, true),
    ("castanet_module", 0, 1, true),
    ("castanet_init", 1, 1, true),
    ("castanet_process", 1, 0, true),
    ("castanet_update", 1, 1, false),
    ("castanet_read", 1, 1, false),
    ("castanet_write", 2, 1, false),
];

impl Module {
    /// Compiles a module. Errors begin with a verb whose subject is the file.
    ///
    /// # Errors
    /// It is malformed, too long, lacks an export, or wants what modules cannot have.
    pub fn compile(bytes: &[u8], limits: Limits) -> Result<Module, String> {
        if bytes.len() > MOST_BYTES {
            let (size, most) = (in_words(bytes.len() as u64), in_words(MOST_BYTES as u64));
            return Err(format!("has {size}; a module can have {most}"));
        }
        if !bytes.starts_with(b"\0asm") {
            return Err("is no WebAssembly module: it does not begin with `\\0asm`".into());
        }
        scan::check(bytes)?;
        let engine = engine(limits).map_err(|error| format!("cannot be run here: {error:#}"))?;
        let module = wasmtime::Module::new(&engine, bytes)
            .map_err(|error| format!("is no WebAssembly module: {}", root(&error)))?;
        check_imports(&module)?;
        check_exports(&module, limits)?;
        let mut linker = Linker::new(&engine);
        imports::define(&mut linker).map_err(|error| format!("cannot be linked: {error:#}"))?;
        let prepared = linker
            .instantiate_pre(&module)
            .map_err(|error| format!("cannot be linked: {}", root(&error)))?;
        Ok(Module { bytes: bytes.into(), limits, prepared })
    }

    /// Makes an instance and initialises it with a configuration.
    ///
    /// # Errors
    /// The module fails, refuses the configuration, or says nonsense about itself.
    pub fn instantiate(&self, configuration: &str, now: Time) -> Result<ModuleInstance, String> {
        ModuleInstance::new(self, configuration, now)
    }

    /// Whether it was compiled of the same bytes with the same limits.
    pub fn is_same(&self, other: &Module) -> bool {
        self.limits == other.limits && self.bytes == other.bytes
    }

    /// Whether a running instance can take another configuration.
    pub fn can_update(&self) -> bool {
        self.prepared.module().get_export("castanet_update").is_some()
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// The innermost message of an error.
fn root(error: &wasmtime::Error) -> String {
    error.root_cause().to_string()
}

/// The engine: nothing that a module needs no more than numbers for, and nothing whose result differs from
/// machine to machine.
fn engine(limits: Limits) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config
        .consume_fuel(limits.meter == Meter::Fuel)
        .epoch_interruption(limits.meter == Meter::Epoch)
        .max_wasm_stack(STACK)
        .wasm_backtrace(false)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .wasm_tail_call(false)
        .wasm_relaxed_simd(false)
        .cranelift_nan_canonicalization(true)
        .memory_init_cow(false);
    Engine::new(&config)
}

fn check_imports(module: &wasmtime::Module) -> Result<(), String> {
    for import in module.imports() {
        let known = match (import.module(), import.name()) {
            ("castanet", "log") => (&[ValType::I32, ValType::I32][..], None),
            ("castanet", "now" | "random") => (&[][..], Some(ValType::I64)),
            (from, name) => {
                return Err(format!(
                    "imports `{name}` from `{from}`; a module can import `log`, `now` and `random` from \
                     `castanet`"
                ));
            }
        };
        let right = FuncType::new(module.engine(), known.0.iter().cloned(), known.1);
        let is_right = import.ty().func().is_some_and(|it| it.matches(&right));
        if !is_right {
            return Err(format!("imports `{}` with other types than {right}", import.name()));
        }
    }
    Ok(())
}

fn check_exports(module: &wasmtime::Module, limits: Limits) -> Result<(), String> {
    let memory = match module.get_export("memory") {
        Some(ExternType::Memory(memory)) => memory,
        _ => return Err("does not export its memory as `memory`".into()),
    };
    let minimum = memory.minimum().saturating_mul(memory.page_size());
    if minimum > limits.memory as u64 {
        let (has, most) = (in_words(minimum), in_words(limits.memory as u64));
        return Err(format!("begins with {has} of memory; MEMORY allows {most}"));
    }
    for &(name, params, results, is_needed) in FUNCTIONS {
        let integers = |n| vec![ValType::I32; n];
        let right = FuncType::new(module.engine(), integers(params), integers(results));
        match module.get_export(name) {
            None if !is_needed => {}
            None => return Err(format!("does not export the function `{name}`")),
            Some(ExternType::Func(it)) if it.matches(&right) => {}
            Some(_) => return Err(format!("exports `{name}` not as {right}")),
        }
    }
    Ok(())
}
