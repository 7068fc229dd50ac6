//! Errors and warnings about a configuration, all of them at once.

use crate::source::{SourceMap, Span};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The configuration cannot run.
    Error,
    /// The configuration can run, perhaps not as meant.
    Warning,
    /// The configuration itself wants it said.
    Note,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where, if it is in a text.
    pub span: Option<Span>,
    /// What, in Click's words where Click has words for it.
    pub message: String,
    /// What belongs to it: with a place, a line of its own; without, detail under the message.
    pub notes: Vec<(Option<Span>, String)>,
    /// What would be right.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            span: span.into(),
            message: message.into(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// A warning.
    pub fn warning(span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) }
    }

    /// Something that is only to be said.
    pub fn note(span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Note, ..Diagnostic::error(span, message) }
    }

    /// With a note at a place, or with detail under the message.
    pub fn with_note(mut self, span: impl Into<Option<Span>>, note: impl Into<String>) -> Self {
        self.notes.push((span.into(), note.into()));
        self
    }

    /// With what would be right.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// With what would be right, if that is known.
    pub fn with_maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }
}

/// How many are kept unless told otherwise.
const DEFAULT_CAP: usize = 100;

/// What was found wrong, in the order in which it was found.
///
/// At most a hundred are kept (see [`Diagnostics::with_cap`]); the rest are counted, so that a
/// megabyte of garbage does not print a megabyte of errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    cap: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
}

impl Default for Diagnostics {
    fn default() -> Self {
        Diagnostics::with_cap(DEFAULT_CAP)
    }
}

impl Diagnostics {
    /// None yet.
    pub fn new() -> Self {
        Diagnostics::default()
    }

    /// None yet, and at most `cap` are to be kept.
    pub fn with_cap(cap: usize) -> Self {
        Diagnostics { list: Vec::new(), cap, errors: 0, warnings: 0, notes: 0 }
    }

    /// Adds one, or counts it if there are too many already.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        match diagnostic.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
            Severity::Note => self.notes += 1,
        }
        if self.list.len() < self.cap {
            self.list.push(diagnostic);
        }
    }

    /// Adds an error.
    pub fn error(&mut self, span: impl Into<Option<Span>>, message: impl Into<String>) {
        self.push(Diagnostic::error(span, message));
    }

    /// Adds a warning.
    pub fn warning(&mut self, span: impl Into<Option<Span>>, message: impl Into<String>) {
        self.push(Diagnostic::warning(span, message));
    }

    /// Adds all of another collection.
    pub fn append(&mut self, other: Diagnostics) {
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.notes += other.notes;
        let room = self.cap.saturating_sub(self.list.len());
        self.list.extend(other.list.into_iter().take(room));
    }

    /// Keeps errors only.
    pub fn forget_warnings(&mut self) {
        self.list.retain(|one| one.severity != Severity::Warning);
        self.warnings = 0;
    }

    /// Whether further ones are only counted: time to stop looking for suggestions.
    pub fn is_full(&self) -> bool {
        self.list.len() >= self.cap
    }

    /// Whether there is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Number of errors, those not kept too.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Number of warnings, those not kept too.
    pub fn warnings(&self) -> usize {
        self.warnings
    }

    /// Number of those that were not kept.
    pub fn dropped(&self) -> usize {
        self.errors + self.warnings + self.notes - self.list.len()
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.errors + self.warnings + self.notes == 0
    }

    /// Those kept.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// `FILE:LINE: message` lines, as Click prints them; notes with a place are lines of their own,
    /// others are indented under the message. Suggestions are left out.
    pub fn render_click(&self, sources: &SourceMap) -> String {
        crate::render::click(self, sources)
    }

    /// Castanet's form: the message, file, line and column, the source line with a caret, notes and
    /// help.
    pub fn render_rich(&self, sources: &SourceMap, color: bool) -> String {
        crate::render::rich(self, sources, color)
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(iter: I) -> Self {
        let mut all = Diagnostics::new();
        iter.into_iter().for_each(|one| all.push(one));
        all
    }
}
