//! Policies as users write them, as network functions.

mod ip_filter;

pub use ip_filter::ip_filter;

use crate::bits::{Bits, Ternary};
use crate::function::NetworkFunction;
use castanet_kit::classify::RuleError;
use std::fmt::{Display, Formatter};

/// A rule that cannot be part of a private function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// Index of the rule.
    pub rule: usize,
    /// The error, with its offset in the text of the rule.
    pub error: RuleError,
}

impl Display for PolicyError {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        write!(f, "rule {}: {}", self.rule + 1, self.error.message)
    }
}

impl std::error::Error for PolicyError {}

/// A function, and the bits of a header string that it is applied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledPolicy {
    /// The function.
    pub function: NetworkFunction,
    /// n, a multiple of eight.
    pub header_bits: usize,
}

/// The action that drops a packet: 0 in all of the first `header_bits` bits.
pub fn drop_action(header_bits: usize) -> Ternary {
    Ternary::new(Bits::ZERO, Bits::first(header_bits))
}
