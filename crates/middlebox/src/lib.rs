//! Middleboxes by one-line rules: the language, and the element that follows them.
#![forbid(unsafe_code)]

pub mod analysis;
mod books;
mod burst;
mod connections;
mod exits;
pub mod field;
mod file;
mod fragments;
mod fuzz;
pub mod headers;
mod holds;
mod in_force;
mod interfaces;
mod judge;
pub mod language;
mod listing;
mod matcher;
#[allow(missing_docs)] // the manual says it
pub mod middlebox;
mod page;
pub mod placement;
mod reload;
pub mod rewrite;
pub mod rule;
mod rules;
#[cfg(test)]
mod tests;
mod trial;
pub mod value;

pub use fuzz::fuzz_entry;
pub use holds::Seen;
pub use in_force::InForce;
pub use matcher::{Matcher, Tables};
pub use page::page;
pub use rules::{Change, Entry, Other, Rules, Timeouts};

use castanet_engine::class::{Class, per_batch};

/// Every class of this crate.
pub static CLASSES: &[Class] = &[per_batch::<middlebox::Middlebox>().in_common()];
