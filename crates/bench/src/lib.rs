//! Benchmarks of Castanet. Each measures its reference in turn with itself, on the same machine.
//!
//! Nothing here prints: a function `run` returns its records and passes each one to a callback as
//! soon as it is measured. Benchmarks of element graphs take the caller's library of classes.
//! Some benchmarks start the running program again (`std::env::current_exe`), which must be
//! `castanet` with its commands `run` and `middlebox`. Programs that `castanet build` made are the
//! caller's to build ([`built`]).
#![forbid(unsafe_code)]

mod bench_ring;
mod bench_source;
pub mod built;
mod built_router;
pub mod classify;
pub mod elements;
pub mod example;
pub mod firewall;
pub mod flows;
mod fused;
pub mod io;
mod measure;
pub mod models;
pub mod observe;
pub mod paths;
pub mod router;
pub mod scale;
pub mod shared;
pub mod shared_packets;
pub mod slots;
pub mod splitbox;
mod tenant_attacks;
mod tenant_devices;
mod tenant_targets;
pub mod tenants;
mod traffic;
#[cfg(feature = "wasm")]
pub mod wasm;
mod worker_counts;
