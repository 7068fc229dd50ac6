//! Errors and warnings about rules that parse: contradictions and targets without effect.

mod bounds;
mod constraints;
mod kinds;
mod rule_error;
#[cfg(test)]
mod tests;
mod warnings;

pub(crate) use rule_error::rule_error;
pub(crate) use warnings::warnings_beside;
pub use warnings::{warnings, warnings_of_all};

use crate::rule::Rule;

/// A part of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RulePart {
    /// The match of that number, from 0.
    Match(usize),
    /// The target of that number, from 0.
    Target(usize),
}

/// An error or warning about a part of a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleDiagnostic {
    /// The part.
    pub part: RulePart,
    /// The message.
    pub message: String,
    /// A suggestion, if there is one.
    pub help: Option<String>,
}

impl RuleDiagnostic {
    /// Creates a diagnostic with a suggestion.
    pub(crate) fn new(
        part: RulePart,
        message: String,
        help: impl Into<Option<String>>,
    ) -> RuleDiagnostic {
        RuleDiagnostic { part, message, help: help.into() }
    }

    /// The diagnostic in one line, with the words of the rule that it concerns unless the message
    /// quotes them.
    pub fn line(&self, rule: &Rule) -> String {
        let words = match self.part {
            RulePart::Match(at) => rule.matches.get(at).map(ToString::to_string),
            RulePart::Target(at) => rule.targets.get(at).map(ToString::to_string),
        };
        let words = words.map(|words| format!("`{words}`")).unwrap_or_default();
        let about = match self.message.contains(&words) {
            true => String::new(),
            false => format!("{words}: "),
        };
        let help = self.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
        format!("{about}{}{help}", self.message)
    }
}
