//! Modules and their instances, on wasmtime.

mod imports;
mod instance;
mod module;
mod scan;

pub use instance::ModuleInstance;
pub use module::{Limits, Meter, Module};
