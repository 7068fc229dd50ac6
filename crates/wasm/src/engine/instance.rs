//! Instances of modules: one for each worker.

use super::imports::HostState;
use super::module::{Limits, Meter, Module};
use crate::abi;
use crate::fault::Fault;
use crate::interface::ModuleInterface;
use castanet_element::memory::in_words;
use castanet_element::time::Time;
use wasmtime::{Instance, Memory, Store, StoreLimitsBuilder, Trap, TypedFunc};

/// Instructions for the start function, initialisation and another configuration, which may build tables.
const LONG_CALL: u64 = 50_000_000;
/// Most entries of a module's tables.
const TABLE_ENTRIES: usize = 16_384;

/// A running module.
pub struct ModuleInstance {
    store: Store<HostState>,
    memory: Memory,
    process: TypedFunc<i32, ()>,
    update: Option<TypedFunc<i32, i32>>,
    read: Option<TypedFunc<i32, i32>>,
    write: Option<TypedFunc<(i32, i32), i32>>,
    interface: ModuleInterface,
    limits: Limits,
}

impl ModuleInstance {
    pub(super) fn new(module: &Module, configuration: &str, now: Time) -> Result<Self, String> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(module.limits.memory)
            .table_elements(TABLE_ENTRIES)
            .instances(1)
            .tables(4)
            .memories(1)
            .trap_on_grow_failure(true)
            .build();
        let engine = module.prepared.module().engine();
        let mut store = Store::new(engine, HostState::new(limits, now));
        store.limiter(|state| &mut state.limits);
        let fault =
            |error| format!("cannot be started: {}", fault(error, LONG_CALL, module.limits));
        arm(&mut store, module.limits, LONG_CALL).map_err(fault)?;
        let instance = module.prepared.instantiate(&mut store).map_err(fault)?;
        let memory = instance.get_memory(&mut store, "memory");
        let memory = memory.ok_or("does not export its memory as `memory`")?;
        let number = |store: &mut Store<HostState>, name: &str| {
            let function = instance.get_typed_func::<(), i32>(&mut *store, name);
            function.and_then(|function| function.call(store, ())).map_err(fault)
        };
        let version = number(&mut store, "castanet_abi_version")?;
        if version != abi::VERSION {
            return Err(format!(
                "has version {version} of the interface; Castanet has {}",
                abi::VERSION
            ));
        }
        let address = number(&mut store, "castanet_module")? as u32;
        let interface = ModuleInterface::read(memory.data(&store), address)?;
        let mut made = ModuleInstance {
            process: instance.get_typed_func(&mut store, "castanet_process").map_err(fault)?,
            update: optional(&instance, &mut store, "castanet_update"),
            read: optional(&instance, &mut store, "castanet_read"),
            write: optional(&instance, &mut store, "castanet_write"),
            store,
            memory,
            interface,
            limits: module.limits,
        };
        made.check_handlers()?;
        let init = instance.get_typed_func::<i32, i32>(&mut made.store, "castanet_init");
        let init = init.map_err(fault)?;
        let done = made.call_with_text(&init, configuration);
        match done.map_err(|fault| format!("cannot be started: {fault}"))? {
            Ok(()) => Ok(made),
            Err(message) => Err(format!("refuses its configuration: {message}")),
        }
    }

    /// Checks that there is a function for the handlers.
    fn check_handlers(&self) -> Result<(), String> {
        let has = |access| self.interface.handlers.iter().any(|(_, it)| it & access != 0);
        for (access, function, is_there) in [
            (abi::READ, "castanet_read", self.read.is_some()),
            (abi::WRITE, "castanet_write", self.write.is_some()),
        ] {
            if has(access) && !is_there {
                return Err(format!("declares handlers, but does not export `{function}`"));
            }
        }
        Ok(())
    }

    /// The description of the module.
    pub fn interface(&self) -> &ModuleInterface {
        &self.interface
    }

    /// Its memory.
    #[inline]
    pub fn memory(&self) -> &[u8] {
        self.memory.data(&self.store)
    }

    /// Its memory, with its description.
    #[inline]
    pub fn memory_mut(&mut self) -> (&mut [u8], &ModuleInterface) {
        (self.memory.data_mut(&mut self.store), &self.interface)
    }

    /// Has the module process `count` packets, which are in its memory.
    ///
    /// # Errors
    /// The module traps or reaches a limit; the instance is to be dropped.
    #[inline]
    pub fn process(&mut self, count: usize, now: Time) -> Result<(), Fault> {
        self.store.data_mut().now = now;
        let limit = self.limits.instructions;
        let done = arm(&mut self.store, self.limits, limit)
            .and_then(|()| self.process.call(&mut self.store, count as i32));
        done.map_err(|error| fault(error, limit, self.limits))
    }

    /// Gives the module another configuration.
    ///
    /// # Errors
    /// As [`ModuleInstance::process`]; the inner result is the module's own message.
    pub fn update(&mut self, text: &str, now: Time) -> Result<Result<(), String>, Fault> {
        self.store.data_mut().now = now;
        match self.update.clone() {
            Some(update) => self.call_with_text(&update, text),
            None => Ok(Err("the module cannot take another configuration".into())),
        }
    }

    /// Reads a handler of the module.
    ///
    /// # Errors
    /// As [`ModuleInstance::update`].
    pub fn read(&mut self, handler: u32, now: Time) -> Result<Result<String, String>, Fault> {
        self.store.data_mut().now = now;
        let Some(read) = self.read.clone() else { return Ok(Err("cannot be read".into())) };
        let limit = self.limits.instructions;
        let length = arm(&mut self.store, self.limits, limit)
            .and_then(|()| read.call(&mut self.store, handler as i32));
        let length = length.map_err(|error| fault(error, limit, self.limits))?;
        let text = self.text(length.unsigned_abs())?;
        Ok(if length < 0 { Err(text) } else { Ok(text) })
    }

    /// Writes to a handler of the module.
    ///
    /// # Errors
    /// As [`ModuleInstance::update`].
    pub fn write(
        &mut self,
        handler: u32,
        text: &str,
        now: Time,
    ) -> Result<Result<(), String>, Fault> {
        self.store.data_mut().now = now;
        let Some(write) = self.write.clone() else { return Ok(Err("cannot be written".into())) };
        if let Err(message) = self.put_text(text) {
            return Ok(Err(message));
        }
        let limit = self.limits.instructions;
        let done = arm(&mut self.store, self.limits, limit)
            .and_then(|()| write.call(&mut self.store, (handler as i32, text.len() as i32)));
        let done = done.map_err(|error| fault(error, limit, self.limits))?;
        self.outcome(done)
    }

    /// Seeds its random numbers.
    pub fn seed(&mut self, seed: u64) {
        self.store.data_mut().random = seed.max(1);
    }

    /// The lines that the module has logged since the last call.
    #[inline]
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.store.data_mut().log)
    }

    /// Calls a function with a text in the buffer; the inner result is the module's own message.
    fn call_with_text(
        &mut self,
        function: &TypedFunc<i32, i32>,
        text: &str,
    ) -> Result<Result<(), String>, Fault> {
        if let Err(message) = self.put_text(text) {
            return Ok(Err(message));
        }
        let done = arm(&mut self.store, self.limits, LONG_CALL)
            .and_then(|()| function.call(&mut self.store, text.len() as i32));
        let done = done.map_err(|error| fault(error, LONG_CALL, self.limits))?;
        self.outcome(done)
    }

    /// Puts a text into the buffer.
    fn put_text(&mut self, text: &str) -> Result<(), String> {
        let (memory, interface) = self.memory_mut();
        let buffer = &mut memory[interface.text.clone()];
        let size = buffer.len();
        let place = buffer.get_mut(..text.len());
        let place =
            place.ok_or(format!("{} bytes are too many for its buffer of {size}", text.len()))?;
        place.copy_from_slice(text.as_bytes());
        Ok(())
    }

    /// The outcome that a result means: an error with a message where it is below 0.
    fn outcome(&self, done: i32) -> Result<Result<(), String>, Fault> {
        match done {
            0.. => Ok(Ok(())),
            _ => Ok(Err(self.text(done.unsigned_abs())?)),
        }
    }

    /// The first bytes of the text buffer.
    fn text(&self, length: u32) -> Result<String, Fault> {
        let buffer = &self.memory()[self.interface.text.clone()];
        let text = buffer.get(..length as usize);
        let text = text.ok_or(Fault::Answer("a text that is longer than its buffer"))?;
        Ok(String::from_utf8_lossy(text).into_owned())
    }
}

impl std::fmt::Debug for ModuleInstance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModuleInstance").field("interface", &self.interface).finish_non_exhaustive()
    }
}

fn optional<P: wasmtime::WasmParams, R: wasmtime::WasmResults>(
    instance: &Instance,
    store: &mut Store<HostState>,
    name: &str,
) -> Option<TypedFunc<P, R>> {
    instance.get_typed_func(store, name).ok()
}

/// Sets the limit of the next call.
#[inline]
fn arm(store: &mut Store<HostState>, limits: Limits, instructions: u64) -> wasmtime::Result<()> {
    match limits.meter {
        Meter::Fuel => return store.set_fuel(instructions),
        Meter::Epoch => store.set_epoch_deadline(1),
        Meter::Unlimited => {}
    }
    Ok(())
}

/// The fault that an error of a call is.
#[cold]
fn fault(error: wasmtime::Error, instructions: u64, limits: Limits) -> Fault {
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel | Trap::Interrupt) => {
            Fault::Limit(format!("{instructions} instructions in one call"))
        }
        Some(Trap::StackOverflow) => Fault::Limit("its stack is full".into()),
        Some(trap) => Fault::Trap(trap.to_string().trim_start_matches("wasm trap: ").to_owned()),
        None => other_fault(&error.root_cause().to_string(), limits),
    }
}

/// The fault that an error is which is no trap: memory or a table that cannot grow, or the system's.
fn other_fault(message: &str, limits: Limits) -> Fault {
    match message.starts_with("forcing trap when growing") {
        true => {
            Fault::Limit(format!("{message}; MEMORY allows {}", in_words(limits.memory as u64)))
        }
        false => Fault::Trap(message.to_owned()),
    }
}
