//! Errors and warnings about a configuration, collected so that all are reported at once.

use crate::source::{SourceMap, Span};

/// Severity of a [`Diagnostic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The configuration cannot run.
    Error,
    /// The configuration can run, but perhaps not as its author expects.
    Warning,
    /// The configuration itself asks for the message, for example with `Message`.
    Note,
}

/// One message about a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its severity.
    pub severity: Severity,
    /// The source text at fault, if there is one.
    pub span: Option<Span>,
    /// The message, in Click's words where Click has words for it.
    pub message: String,
    /// Further messages: one with a span is a line of its own, one without is a detail under the
    /// message.
    pub notes: Vec<(Option<Span>, String)>,
    /// A suggestion of what would be right.
    pub help: Option<String>,
    /// The name of the lint that found it, by which it is silenced.
    pub lint: Option<&'static str>,
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
            lint: None,
        }
    }

    /// A warning.
    pub fn warning(span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) }
    }

    /// A note.
    pub fn note(span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Note, ..Diagnostic::error(span, message) }
    }

    /// Adds a note at a span, or a detail under the message.
    pub fn with_note(mut self, span: impl Into<Option<Span>>, note: impl Into<String>) -> Self {
        self.notes.push((span.into(), note.into()));
        self
    }

    /// Sets the name of the lint.
    pub fn with_lint(mut self, lint: &'static str) -> Self {
        self.lint = Some(lint);
        self
    }

    /// Sets the suggestion.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the suggestion, if there is one.
    pub fn with_maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }
}

/// Number of diagnostics kept, unless the caller sets another.
const DEFAULT_CAP: usize = 100;

/// A list of diagnostics in the order in which they were reported.
///
/// It keeps at most a hundred (see [`Diagnostics::with_cap`]) and counts the rest, so that a
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
    /// An empty list.
    pub fn new() -> Self {
        Diagnostics::default()
    }

    /// An empty list that keeps at most `cap` diagnostics.
    pub fn with_cap(cap: usize) -> Self {
        Diagnostics { list: Vec::new(), cap, errors: 0, warnings: 0, notes: 0 }
    }

    /// Adds a diagnostic, or only counts it if the list is full.
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

    /// Adds all diagnostics of another list.
    pub fn append(&mut self, other: Diagnostics) {
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.notes += other.notes;
        let room = self.cap.saturating_sub(self.list.len());
        self.list.extend(other.list.into_iter().take(room));
    }

    /// Orders the diagnostics by their places in the texts; those without a place come first.
    pub fn sort_by_place(&mut self) {
        self.list.sort_by_key(|one| one.span.map(|span| (span.file, span.start)));
    }

    /// Removes warnings of lints that `is_silent` is true of.
    pub fn silence(&mut self, is_silent: impl Fn(&Diagnostic, &str) -> bool) {
        let before = self.list.len();
        self.list.retain(|one| !one.lint.is_some_and(|lint| is_silent(one, lint)));
        self.warnings -= before - self.list.len();
    }

    /// Removes all warnings.
    pub fn remove_warnings(&mut self) {
        self.list.retain(|one| one.severity != Severity::Warning);
        self.warnings = 0;
    }

    /// Whether further diagnostics are only counted, so that the caller need not look for
    /// suggestions.
    pub fn is_full(&self) -> bool {
        self.list.len() >= self.cap
    }

    /// Whether there is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Number of errors, including those not kept.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Number of warnings, including those not kept.
    pub fn warnings(&self) -> usize {
        self.warnings
    }

    /// Number of diagnostics not kept.
    pub fn dropped(&self) -> usize {
        self.errors + self.warnings + self.notes - self.list.len()
    }

    /// Whether no diagnostic was reported.
    pub fn is_empty(&self) -> bool {
        self.errors + self.warnings + self.notes == 0
    }

    /// Iterates over the diagnostics kept.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Renders `FILE:LINE: message` lines as Click prints them. Notes with a span are lines of
    /// their own, others are indented under the message. Suggestions are left out.
    pub fn render_click(&self, sources: &SourceMap) -> String {
        crate::render::click(self, sources)
    }

    /// Renders Castanet's form: the message, file, line and column, the source line with a caret,
    /// notes and the suggestion.
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
