//! Runs graphs of elements: graph steps, workers, router, control, hot swap.
#![forbid(unsafe_code)]

pub mod console;
pub mod cores;
pub mod graph;
pub mod router;
pub mod worker;
