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

mod script;

pub use script::*;

/// The text of each `click` block.
pub fn blocks(doc: &str) -> impl Iterator<Item = String> + '_ {
    doc.split("```").skip(1).step_by(2).filter_map(|b| b.strip_prefix("click\n").map(str::to_owned))
}

/// Whether a line is the example's script rather than its configuration.
pub fn is_script(line: &str) -> bool {
    line.starts_with(['>', '<', '=', '!', '~', '+']) && !line.starts_with("=>")
}
