//! Classification: Click's three pattern languages, one rule form, one compiler.
//!
//! Text becomes a [`Pattern`] ([`Pattern::bytes`] for `Classifier`, [`Pattern::ip`] for
//! `IPClassifier`), patterns become [`Rule`]s, rules become a [`Program`].
//! [`Rule::filter`] reads an `IPFilter` argument, action and pattern, at once.
//!
//! A test on bytes that the packet does not have is false, whatever its relation
//! (`port != 5` as well as `port 5`); only `not` turns that around. That is Click's rule.

mod bytes;
mod dispatch;
mod error;
mod estimate;
mod facts;
mod flat;
mod graph;
mod keys;
mod lexer;
mod listing;
mod lookup;
mod names;
mod parse;
mod pattern;
mod plan;
mod prefixes;
mod primitive;
mod program;
mod rows;
mod runs;
mod steps;
mod table;

pub use error::RuleError;
pub use names::{Names, NoNames};
pub use pattern::{Base, Pattern, Test};
pub use program::{Program, Rule};
pub use steps::{Next, Step, Steps};
pub use table::Lookups;

#[cfg(test)]
mod many;
#[cfg(test)]
mod tests;
