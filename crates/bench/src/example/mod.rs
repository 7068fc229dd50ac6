//! Examples in doc comments, run as tests.
//!
//! The format is that of [`castanet_element::example`]. Each example runs with several burst sizes and numbers of
//! workers and must not notice; at the end every element's packets balance.

mod bench;
mod compare;
mod core_speed;
mod cost;
mod hostile;
mod hot_swap;
mod numbers;
mod ports;
mod sink;

pub use bench::{run, storm, survive};
use castanet_element::class::{Class, Library};
pub use castanet_element::example::blocks;
pub use core_speed::CoreSpeed;
pub use cost::{CostMeasurement, cost, cost_of};
pub use hot_swap::{refuse, refuse_all, with_fragments, with_swaps};
pub use numbers::{Numbers, without_waits};

/// The burst sizes and numbers of workers that every example runs with.
pub const WAYS: [(usize, usize); 6] = [(1, 1), (1, 4), (1, 64), (3, 1), (3, 4), (3, 64)];

/// Runs every example in the documentation of `class`; returns their number.
pub fn run_all(class: &Class, library: &Library) -> Result<usize, String> {
    let examples: Vec<String> = blocks(class.spec.doc).collect();
    for (n, text) in examples.iter().enumerate() {
        for (workers, burst) in WAYS {
            run(text, library, workers, burst).map_err(|e| {
                let (file, n) = (class.spec.file, n + 1);
                format!("{file}, example {n} (workers {workers}, bursts of {burst}), {e}")
            })?;
        }
    }
    Ok(examples.len())
}
