//! The program under test, time limits, and values of its handlers.

use std::path::Path;
use std::time::Duration;

/// The program under test.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_castanet"))
}

/// Long enough for anything that is not a large transfer.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// Long enough for a large transfer through a build without optimization on a busy machine.
pub(crate) const LATER: Duration = Duration::from_secs(60);

/// The number after a handler's name.
pub(crate) fn number(output: &str, name: &str) -> u64 {
    let words: Vec<&str> = output.split_whitespace().collect();
    let at = words.iter().position(|word| word.trim_end_matches(':') == name);
    at.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or_else(|| panic!("{name}: {output}"))
}
