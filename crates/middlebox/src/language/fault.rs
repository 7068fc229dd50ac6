//! What is wrong with a line, where, and what would be right.

use castanet_engine::args::ArgError;
use castanet_lang::{Diagnostic, FileId, Span};
use std::ops::Range;

/// What is wrong with a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
    /// Where, in bytes of the text.
    pub range: Range<usize>,
}

impl Fault {
    /// A fault at a place.
    pub fn new(range: Range<usize>, message: impl Into<String>) -> Fault {
        Fault { message: message.into(), help: None, range }
    }

    /// With what would be right.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Fault {
        self.help = Some(help.into());
        self
    }

    /// With what would be right, if that is known.
    #[must_use]
    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Fault {
        self.help = help.or(self.help);
        self
    }

    /// The same fault, of a text that begins so many bytes later.
    #[must_use]
    pub fn later(mut self, by: usize) -> Fault {
        self.range = self.range.start + by..self.range.end + by;
        self
    }

    /// As what is wrong with a file.
    pub fn diagnostic(&self, file: FileId) -> Diagnostic {
        let place = Span { file, start: self.range.start as u32, end: self.range.end as u32 };
        Diagnostic::error(place, self.message.clone()).with_maybe_help(self.help.clone())
    }
}

impl From<Fault> for ArgError {
    fn from(fault: Fault) -> ArgError {
        let error = ArgError::new(fault.message).within(fault.range.start, fault.range.len());
        match fault.help {
            Some(help) => error.help(help),
            None => error,
        }
    }
}
