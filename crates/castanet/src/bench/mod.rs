//! Benchmarks: each measures its limit beside itself in the same run.

pub(crate) mod classify;
pub(crate) mod elements;
pub(crate) mod firewall;
pub(crate) mod flows;
pub(crate) mod fused;
pub(crate) mod io;
pub(crate) mod measure;
pub(crate) mod models;
pub(crate) mod ring;
pub(crate) mod router;
pub(crate) mod shared;
mod supply;
pub(crate) mod traffic;
