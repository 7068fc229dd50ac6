//! Errors and warnings about rules that parse: a rule contradicts itself, or does less than it seems
//! to.

mod bounds;
mod claims;
mod impossible;
mod kinds;
#[cfg(test)]
mod tests;
mod warnings;

pub use impossible::impossible;
pub use warnings::{warnings, warnings_beside, warnings_of_all};

use crate::rule::Rule;

/// A part of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The match of that number, from 0.
    Match(usize),
    /// The target of that number, from 0.
    Target(usize),
}

/// Something to be said about a part of a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// The part.
    pub part: Part,
    /// What is wrong.
    pub message: String,
    /// A suggestion, if there is one.
    pub help: Option<String>,
}

impl Remark {
    /// A remark with what would be right.
    pub(crate) fn new(part: Part, message: String, help: impl Into<Option<String>>) -> Remark {
        Remark { part, message, help: help.into() }
    }

    /// The remark in one line, with the words of the rule that it is about where it does not
    /// quote them itself.
    pub fn line(&self, rule: &Rule) -> String {
        let words = match self.part {
            Part::Match(at) => rule.matches.get(at).map(ToString::to_string),
            Part::Target(at) => rule.targets.get(at).map(ToString::to_string),
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
