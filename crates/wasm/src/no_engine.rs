//! In place of the engine, where the feature `engine` is off: no module can be made.

use crate::WITHOUT_ENGINE;
use crate::fault::Fault;
use crate::interface::ModuleInterface;
use castanet_element::time::Time;

/// Limits of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions of one call.
    pub instructions: u64,
    /// Bytes of memory.
    pub memory: usize,
    /// How instructions are counted.
    pub meter: Meter,
}

/// How the time of a call is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meter {
    /// By counting instructions.
    Fuel,
}

/// A compiled module: there is none.
#[derive(Debug)]
pub enum Module {}

impl Module {
    /// Refuses: this program has no engine.
    ///
    /// # Errors
    /// Always.
    pub fn compile(_: &[u8], _: Limits) -> Result<Module, String> {
        Err(WITHOUT_ENGINE.to_owned())
    }
    /// Makes an instance.
    ///
    /// # Errors
    /// None: there is no module.
    pub fn instantiate(&self, _: &str, _: Time) -> Result<ModuleInstance, String> {
        match *self {}
    }
    /// Whether it was compiled of these bytes with these limits.
    pub fn is_same(&self, _: &Module) -> bool {
        match *self {}
    }
    /// Whether a running instance can take another configuration.
    pub fn can_update(&self) -> bool {
        match *self {}
    }
}

/// An instance of a module: there is none.
#[derive(Debug)]
pub enum ModuleInstance {}

impl ModuleInstance {
    /// The description of the module.
    pub fn interface(&self) -> &ModuleInterface {
        match *self {}
    }
    /// Its memory.
    pub fn memory(&self) -> &[u8] {
        match *self {}
    }
    /// Its memory with its description.
    pub fn memory_mut(&mut self) -> (&mut [u8], &ModuleInterface) {
        match *self {}
    }
    /// Has the module process packets.
    ///
    /// # Errors
    /// None: there is no instance.
    pub fn process(&mut self, _: usize, _: Time) -> Result<(), Fault> {
        match *self {}
    }
    /// Gives the module another configuration.
    ///
    /// # Errors
    /// None: there is no instance.
    pub fn update(&mut self, _: &str, _: Time) -> Result<Result<(), String>, Fault> {
        match *self {}
    }
    /// Reads a handler.
    ///
    /// # Errors
    /// None: there is no instance.
    pub fn read(&mut self, _: u32, _: Time) -> Result<Result<String, String>, Fault> {
        match *self {}
    }
    /// Writes to a handler.
    ///
    /// # Errors
    /// None: there is no instance.
    pub fn write(&mut self, _: u32, _: &str, _: Time) -> Result<Result<(), String>, Fault> {
        match *self {}
    }
    /// Seeds its random numbers.
    pub fn seed(&mut self, _: u64) {
        match *self {}
    }
    /// The lines that the module has logged since the last call.
    pub fn take_log(&mut self) -> Vec<String> {
        match *self {}
    }
}
