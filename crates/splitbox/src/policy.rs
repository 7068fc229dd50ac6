//! Policies as users write them, as network functions.

mod document;
mod format;
mod ip_filter;
mod join;
mod order;
mod policy_error;
mod profile;
mod rules;
mod stage;
#[cfg(test)]
mod tests;

pub use format::{Format, compile};
pub use ip_filter::ip_filter;
pub use join::{JoinError, JoinField};
pub use order::{OrderReport, TreeShape, order};
pub use policy_error::PolicyError;
pub use profile::{Profile, ProfileError, read_profile};

use crate::bits::{Bits, Ternary};
use crate::function::{FunctionError, NetworkFunction};
use std::fmt::Display;
use std::ops::Range;

/// A function, and the bits of a header string that it is applied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledPolicy {
    /// The function.
    pub function: NetworkFunction,
    /// n, a multiple of eight.
    pub header_bits: usize,
    /// By policy of the function: the place in the text that it comes from.
    pub ranges: Vec<Range<usize>>,
}

impl CompiledPolicy {
    /// An error about a policy of the function, at its place in the text.
    pub fn error_at(&self, policy: usize, message: impl Display) -> PolicyError {
        let range = self.ranges.get(policy).cloned().unwrap_or_default();
        PolicyError::new(range, message.to_string())
    }
}

/// An error of a function of policies from these places of a text.
fn function_error(error: FunctionError, ranges: &[Range<usize>]) -> PolicyError {
    let (policy, message) = match error {
        FunctionError::Overlap { policy, .. } => {
            (policy, "the action changes bits that an earlier action changes")
        }
        FunctionError::Chaining { policy, .. } => {
            (policy, "the match tests bits that an earlier action changes")
        }
        error => return PolicyError::new(0..0, error.to_string()),
    };
    PolicyError::new(ranges.get(policy).cloned().unwrap_or_default(), message)
        .help("all matches and actions of a private function are about the packet as it came")
}

/// The action that drops a packet: 0 in all of the first `header_bits` bits.
pub fn drop_action(header_bits: usize) -> Ternary {
    Ternary::new(Bits::ZERO, Bits::first(header_bits))
}
