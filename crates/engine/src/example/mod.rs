//! Examples in doc comments, run as tests.
//!
//! In a block fenced as `click`, a line
//! `> port packet` feeds a packet, `< port packet` expects one,
//! `= handler value` expects an answer, `! handler value` writes,
//! `~ text` expects a line that an element wrote, `+ 1.5s` lets simulated
//! time pass; all other lines are configuration. Names that the configuration
//! does not declare are ports of the example: those that `>` lines name feed,
//! the others collect. After a packet, `; paint 3` sets or expects
//! annotations. Each example runs with several burst sizes and numbers of
//! workers and must not notice; at the end every element's packets balance.
//! Fuzzers' texts may have several parts, with a line `%` between them: each is
//! the configuration that replaces the one before it, and what then happens.

mod bench;
mod compare;
mod cost;
mod hostile;
mod numbers;
mod ports;
mod pulse;
mod replaced;
mod script;
mod sink;

use crate::class::{Class, Library};
pub use bench::{run, storm, survive};
pub use cost::{Measured, cost, cost_of};
pub use numbers::{Numbers, without_waits};
pub use pulse::Pulse;
pub use replaced::{refuse, refuse_all, with_fragments, with_swaps};

/// The burst sizes and numbers of workers that every example runs with.
pub const WAYS: [(usize, usize); 6] = [(1, 1), (1, 4), (1, 64), (3, 1), (3, 4), (3, 64)];

/// Runs every example in the documentation of `class`; says how many.
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

/// The text of each `click` block.
pub fn blocks(doc: &str) -> impl Iterator<Item = String> + '_ {
    doc.split("```").skip(1).step_by(2).filter_map(|b| b.strip_prefix("click\n").map(str::to_owned))
}

/// Whether a line is the example's script rather than its configuration.
pub fn is_script(line: &str) -> bool {
    line.starts_with(['>', '<', '=', '!', '~', '+']) && !line.starts_with("=>")
}
