//! Parse errors: message, range and suggestion.

use castanet_element::error::ArgError;
use castanet_lang::{Diagnostic, FileId, Span};
use std::ops::Range;

/// A parse error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// The message.
    pub message: String,
    /// A suggestion.
    pub help: Option<String>,
    /// Range in bytes of the text.
    pub range: Range<usize>,
}

impl ParseError {
    /// Creates an error for a range.
    pub fn new(range: Range<usize>, message: impl Into<String>) -> ParseError {
        ParseError { message: message.into(), help: None, range }
    }

    /// Adds a suggestion.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> ParseError {
        self.help = Some(help.into());
        self
    }

    /// Adds a suggestion, if there is one.
    #[must_use]
    pub(crate) fn maybe_help(mut self, help: Option<String>) -> ParseError {
        self.help = help.or(self.help);
        self
    }

    /// Moves the range by a number of bytes.
    #[must_use]
    pub fn shifted(mut self, by: usize) -> ParseError {
        self.range = self.range.start + by..self.range.end + by;
        self
    }

    /// Converts to a diagnostic of a file.
    pub fn diagnostic(&self, file: FileId) -> Diagnostic {
        let place = Span { file, start: self.range.start as u32, end: self.range.end as u32 };
        Diagnostic::error(place, self.message.clone()).with_maybe_help(self.help.clone())
    }
}

impl From<ParseError> for ArgError {
    fn from(fault: ParseError) -> ArgError {
        let error = ArgError::new(fault.message).within(fault.range.start, fault.range.len());
        match fault.help {
            Some(help) => error.help(help),
            None => error,
        }
    }
}
