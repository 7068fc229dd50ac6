//! `WasmElement`: elements that are WebAssembly modules, on batches of packets.
//!
//! The feature `engine` adds wasmtime; without it the element refuses its arguments and says how to
//! build with it. `docs/wasm.md` describes the interface between Castanet and a module.
#![forbid(unsafe_code)]
// Without the engine nothing reads a module.
#![cfg_attr(not(feature = "engine"), allow(dead_code))]

mod abi;
mod args;
mod exit;
mod fault;
mod interface;
mod metrics;
mod state;
mod transfer;
mod wasm_element;

#[cfg(feature = "engine")]
mod engine;
#[cfg(not(feature = "engine"))]
#[path = "no_engine.rs"]
mod engine;

pub use args::WasmElementArgs;
pub use engine::{Limits, Meter, Module, ModuleInstance};
pub use exit::WasmExit;
pub use fault::{FIRST_FAULTS, Fault};
pub use interface::ModuleInterface;
pub use transfer::{copy_in, copy_out};
pub use wasm_element::WasmElement;

use castanet_element::class::{Class, per_batch};

/// The classes of this crate.
pub const CLASSES: &[Class] = &[per_batch::<WasmElement>().with_resources(args::resources)];

/// The reason why a program without the engine cannot run modules, and what would be right.
pub const WITHOUT_ENGINE: &str = "this program was built without WebAssembly: build it with \
                                  `cargo build --release --package castanet --features wasm`";
