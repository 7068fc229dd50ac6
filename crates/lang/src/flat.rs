//! The flat graph: elements, connections, no compounds.

use std::ops::Range;

use crate::args::Kept;
use crate::source::Span;
use crate::tree::ConfigText;

/// A configuration with compound elements expanded and variables substituted.
#[derive(Clone, Debug, Default)]
pub struct Flat {
    /// The elements in Click's order: those of the file, then the contents of its compounds.
    pub elements: Vec<FlatElement>,
    /// The connections in Click's order: by input port, then by output port; none twice.
    pub connections: Vec<Connection>,
    /// What `require` asked for: `package NAME`, `compact_config`.
    pub requirements: Vec<String>,
    /// Variables that configuration strings still name, with their values; see
    /// [`expand_keeping`](crate::expand_keeping).
    pub defines: Vec<(String, String)>,
}

impl Flat {
    /// Adds an element that the configuration does not have; `span` is the text that asks for it.
    pub fn add(&mut self, name: &str, class: &str, config: &str, span: Span) {
        let (name, class, config) = (name.to_owned(), class.to_owned(), config.to_owned());
        let (config_span, origin) = (None, Origin::default());
        self.elements.push(FlatElement { name, class, config, config_span, span, origin });
    }

    /// The element of a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.elements.iter().position(|element| element.name == name)
    }

    /// For each element, one more than the highest input and output port that is connected.
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
    /// Its name, with those of the compounds around it before slashes.
    pub name: String,
    /// Its class.
    pub class: String,
    /// Its configuration string: variables substituted, comments and surrounding space gone.
    pub config: String,
    /// What stands between the parentheses in the source.
    pub config_span: Option<Span>,
    /// Where it is declared.
    pub span: Span,
    pub(crate) origin: Origin,
}

impl FlatElement {
    /// Where in the source a part of `config` comes from: for text that a variable stood for, the
    /// variable.
    pub fn span_of(&self, range: Range<usize>) -> Span {
        let Some(span) = self.config_span else { return self.span };
        let Range { start, end } = self.origin.source(range);
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
}

/// The steps by which a source text became a configuration string, the last step first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    pub(crate) layers: Vec<Layer>,
}

/// What one step kept, and how long the text was before it.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) kept: Vec<Kept>,
    pub(crate) before: usize,
}

impl Origin {
    fn source(&self, range: Range<usize>) -> Range<usize> {
        self.layers.iter().fold(range, |range, layer| layer.source(range))
    }

    /// Records a step, unless it changed nothing.
    pub(crate) fn push(&mut self, kept: Vec<Kept>, before: usize) {
        let unchanged = matches!(kept[..], [Kept { to: 0, from: 0, len }] if len == before);
        if !unchanged {
            self.layers.insert(0, Layer { kept, before });
        }
    }
}

impl Layer {
    fn source(&self, range: Range<usize>) -> Range<usize> {
        let start = self.place(range.start, false);
        start..self.place(range.end, true).max(start)
    }

    /// Where an offset comes from; one in text that was put in comes from the start, or as an `end`
    /// from the end, of what was taken out there.
    fn place(&self, at: usize, end: bool) -> usize {
        let after = self.kept.partition_point(|k| if end { k.to < at } else { k.to <= at });
        let before = after.checked_sub(1).map(|i| self.kept[i]);
        match before {
            Some(k) if at < k.to + k.len || (end && at <= k.to + k.len) => k.from + (at - k.to),
            _ if end => self.kept.get(after).map_or(self.before, |next| next.from),
            Some(k) => k.from + k.len,
            None => 0,
        }
    }
}

impl Origin {
    /// Starts with the line directives that were cut out of a configuration string.
    pub(crate) fn cut(&mut self, config: &ConfigText) {
        if config.cuts.is_empty() {
            return;
        }
        let mut kept = Vec::new();
        let (mut to, mut from) = (0, 0);
        for &(at, resume) in &config.cuts {
            kept.push(Kept { to, from, len: at as usize - to });
            (to, from) = (at as usize, (resume - config.span.start) as usize);
        }
        kept.push(Kept { to, from, len: config.text.len() - to });
        self.push(kept, config.span.range().len());
    }
}
