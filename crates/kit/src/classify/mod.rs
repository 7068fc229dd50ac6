//! Classification: Click's three pattern languages, compiled to one form of program.
//!
//! Text is parsed to a [`Pattern`] ([`Pattern::bytes`] for `Classifier`, [`Pattern::ip`] for
//! `IPClassifier`), a pattern with an output is a [`Rule`], and rules are compiled to a
//! [`Program`]. [`Rule::filter`] parses an `IPFilter` argument, which is an action and a pattern.
//!
//! As in Click, a test on bytes that the packet does not have is false, whatever its relation
//! (`port != 5` as well as `port 5`); only `not` inverts it.

mod bytecode;
mod bytes;
mod click_program;
mod comparisons;
mod conjunctions;
mod dispatch;
mod error;
mod estimate;
mod facts;
mod first;
mod graph;
mod header_words;
mod instructions;
mod key_layout;
mod key_plan;
mod lexer;
mod listing;
mod lookup;
mod names;
mod native;
mod parse;
mod pattern;
mod prefixes;
mod primitive;
mod program;
mod runs;
mod steps;
mod sufficient;
mod table;
mod terms;
mod vector;

pub use click_program::ClickProgram;
pub use conjunctions::{Conjunction, ConjunctionsError, HeaderLength, MaskedWord};
pub use error::RuleError;
pub use lookup::known_port;
pub(crate) use names::{ANY_TRANSPORT, PROTOCOLS, TCP_OR_UDP};
pub use names::{Names, NoNames};
pub use native::{NativeTests, word};
pub use pattern::{Base, Pattern, Test};
pub use program::{Program, Rule};
pub use steps::{Branch, Step, Steps};
pub use table::Lookups;

#[cfg(test)]
mod large_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vector_tests;
