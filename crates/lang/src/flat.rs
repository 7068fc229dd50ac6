//! The flat graph: elements and connections of a configuration without compounds.

use std::ops::Range;

use crate::args::CopiedRange;
use crate::source::Span;
use crate::tree::ConfigText;

/// A configuration with compound elements expanded and variables substituted.
#[derive(Clone, Debug, Default)]
pub struct FlatGraph {
    /// The elements in Click's order: those of the file, then the contents of its compounds.
    pub elements: Vec<FlatElement>,
    /// The connections in Click's order: by input port, then by output port; none twice.
    pub connections: Vec<Connection>,
    /// Requirements of `require` statements: `package NAME`, `compact_config`.
    pub requirements: Vec<String>,
    /// Variables that configuration strings still name, with their values; see
    /// [`expand_keeping_variables`](crate::transform::expand_keeping_variables).
    pub defines: Vec<(String, String)>,
    /// Names of compounds whose elements find no element outside of them by name.
    pub sealed: Vec<String>,
}

impl FlatGraph {
    /// Adds an element that the configuration does not declare; `span` is the text that needs it.
    pub fn add(&mut self, name: &str, class: &str, config: &str, span: Span) {
        let (name, class, config) = (name.to_owned(), class.to_owned(), config.to_owned());
        let (config_span, origin) = (None, ConfigOrigin::default());
        self.elements.push(FlatElement { name, class, config, config_span, span, origin });
    }

    /// Adds a connection, the youngest one; `span` is the text that needs it.
    pub fn connect(&mut self, from: Port, to: Port, span: Span) {
        let age = self.connections.iter().map(|c| c.age + 1).max().unwrap_or(0);
        self.connections.push(Connection { from, to, span, age });
    }

    /// Returns the index of the element with a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.elements.iter().position(|element| element.name == name)
    }

    /// Returns for each element its numbers of inputs and outputs: one more than the highest
    /// connected port.
    pub fn ports(&self) -> Vec<(usize, usize)> {
        let mut ports = vec![(0, 0); self.elements.len()];
        for Connection { from, to, .. } in &self.connections {
            ports[from.element].1 = ports[from.element].1.max(from.port + 1);
            ports[to.element].0 = ports[to.element].0.max(to.port + 1);
        }
        ports
    }
}

/// An element.
#[derive(Clone, Debug)]
pub struct FlatElement {
    /// Its name, after the names of the compounds around it and a slash each.
    pub name: String,
    /// Its class.
    pub class: String,
    /// Its configuration string: variables substituted, comments and surrounding space removed.
    pub config: String,
    /// The source text between the parentheses.
    pub config_span: Option<Span>,
    /// The declaration in the source text.
    pub span: Span,
    pub(crate) origin: ConfigOrigin,
}

impl FlatElement {
    /// Returns the source text of a range of `config`; for the value of a variable, the variable.
    pub fn span_of(&self, range: Range<usize>) -> Span {
        let Some(span) = self.config_span else { return self.span };
        let Range { start, end } = self.origin.source_range(range);
        let end = (span.start + end as u32).min(span.end);
        Span { file: span.file, start: (span.start + start as u32).min(end), end }
    }
}

/// A port of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Port {
    /// Index of the element.
    pub element: usize,
    /// Number of the port.
    pub port: usize,
}

/// A connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Output port.
    pub from: Port,
    /// Input port.
    pub to: Port,
    /// The arrow.
    pub span: Span,
    /// Its rank by age: connections that were made earlier have lower numbers.
    pub age: usize,
}

/// Maps a configuration string back to its source text: the substitution steps between them, the
/// last step first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigOrigin {
    pub(crate) steps: Vec<SubstitutionStep>,
}

/// One substitution step: the ranges that it copied, and the length of the text before it.
#[derive(Clone, Debug)]
pub(crate) struct SubstitutionStep {
    pub(crate) copied: Vec<CopiedRange>,
    pub(crate) len_before: usize,
}

impl ConfigOrigin {
    fn source_range(&self, range: Range<usize>) -> Range<usize> {
        self.steps.iter().fold(range, |range, step| step.source_range(range))
    }

    /// Records a step, unless it left the text unchanged.
    pub(crate) fn push(&mut self, copied: Vec<CopiedRange>, len_before: usize) {
        let unchanged =
            matches!(copied[..], [CopiedRange { to: 0, from: 0, len }] if len == len_before);
        if !unchanged {
            self.steps.insert(0, SubstitutionStep { copied, len_before });
        }
    }
}

impl SubstitutionStep {
    fn source_range(&self, range: Range<usize>) -> Range<usize> {
        let start = self.source_offset(range.start, false);
        start..self.source_offset(range.end, true).max(start)
    }

    /// Maps an offset in the new text to the old text. An offset in inserted text maps to the start
    /// of the text that it replaces, or to its end if the offset is the `end` of a range.
    fn source_offset(&self, at: usize, end: bool) -> usize {
        let after = self.copied.partition_point(|k| if end { k.to < at } else { k.to <= at });
        let before = after.checked_sub(1).map(|i| self.copied[i]);
        match before {
            Some(k) if at < k.to + k.len || (end && at <= k.to + k.len) => k.from + (at - k.to),
            _ if end => self.copied.get(after).map_or(self.len_before, |next| next.from),
            Some(k) => k.from + k.len,
            None => 0,
        }
    }
}

impl ConfigOrigin {
    /// Records the line directives that the lexer cut out of a configuration string.
    pub(crate) fn push_directive_cuts(&mut self, config: &ConfigText) {
        if config.cuts.is_empty() {
            return;
        }
        let mut copied = Vec::new();
        let (mut to, mut from) = (0, 0);
        for &(at, resume) in &config.cuts {
            copied.push(CopiedRange { to, from, len: at as usize - to });
            (to, from) = (at as usize, (resume - config.span.start) as usize);
        }
        copied.push(CopiedRange { to, from, len: config.text.len() - to });
        self.push(copied, config.span.range().len());
    }
}
