//! Errors in the text of a policy: place, message and suggestion.

use castanet_kit::classify::RuleError;
use castanet_lang::{Diagnostic, FileId, Span};
use castanet_middlebox::language::ParseError;
use std::fmt::{Display, Formatter};
use std::ops::Range;

/// An error in the text of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// The bytes of the text that it is about.
    pub range: Range<usize>,
    /// The message.
    pub message: String,
    /// A suggestion of what would be right.
    pub help: Option<String>,
}

impl PolicyError {
    /// An error about a range of the text.
    pub fn new(range: Range<usize>, message: impl Into<String>) -> PolicyError {
        PolicyError { range, message: message.into(), help: None }
    }

    /// The same error with a suggestion.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> PolicyError {
        self.help = Some(help.into());
        self
    }

    /// The error of a rule of `IPFilter`, which begins at `start` of the text. The error is about the word
    /// at its offset.
    pub(super) fn of_rule(error: RuleError, rule: &str, start: usize) -> PolicyError {
        let rest = rule.get(error.offset..).unwrap_or_default();
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let start = start + error.offset;
        PolicyError { range: start..start + length, message: error.message, help: error.help }
    }

    /// The line of a text in which it is, from 1.
    pub fn line(&self, text: &str) -> usize {
        let before = text.bytes().take(self.range.start);
        before.filter(|&byte| byte == b'\n').count() + 1
    }

    /// The error as a diagnostic of a file.
    pub fn diagnostic(&self, file: FileId) -> Diagnostic {
        let Range { start, end } = self.range;
        let place = Span { file, start: start as u32, end: end as u32 };
        Diagnostic::error(place, self.message.clone()).with_maybe_help(self.help.clone())
    }
}

impl From<ParseError> for PolicyError {
    fn from(error: ParseError) -> PolicyError {
        PolicyError { range: error.range, message: error.message, help: error.help }
    }
}

impl Display for PolicyError {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        match &self.help {
            Some(help) => write!(f, "{}; {help}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for PolicyError {}
