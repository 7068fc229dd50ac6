//! `click-xform`: replaces patterns of elements until none matches.

mod bindings;
mod search;

use std::collections::{HashMap, HashSet};

use super::editor::GraphEditor;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::expand::{ClassInfo, PORT_CLASS, compounds};
use crate::flat::{FlatElement, FlatGraph, Port};
use crate::source::Span;
use crate::tree::Tree;
use search::{Match, Search};

/// Most replacements, and further ones for each element of the graph; more are taken for patterns
/// that never end.
const MAX_REPLACEMENTS: usize = 1000;
const MAX_REPLACEMENTS_PER_ELEMENT: usize = 16;
/// Most elements by which the graph may grow; more are taken for patterns that never end.
const MAX_GROWTH: usize = 200_000;

/// Most elements of a pattern; more are taken for a mistake.
const MAX_PATTERN: usize = 500;

/// A pattern and its replacement.
#[derive(Clone, Debug)]
pub struct Pattern {
    name: String,
    span: Span,
    pattern: PatternGraph,
    replacement: PatternGraph,
}

impl Pattern {
    /// Exchanges pattern and replacement.
    pub fn reversed(self) -> Self {
        Pattern { pattern: self.replacement, replacement: self.pattern, ..self }
    }
}

/// The body of a compound class, with its connections to `input` and `output` apart.
#[derive(Clone, Debug, Default)]
struct PatternGraph {
    elements: Vec<FlatElement>,
    links: Vec<(Port, Port)>,
    /// Inputs of the body and the ports that they lead to.
    inputs: Vec<(usize, Port)>,
    /// Ports that lead to outputs of the body, and these outputs.
    outputs: Vec<(Port, usize)>,
    /// Inputs of the body that lead to outputs of the body.
    through: Vec<(usize, usize)>,
}

impl PatternGraph {
    fn new(body: FlatGraph) -> Self {
        let is_open = |at: usize| body.elements[at].class == PORT_CLASS;
        let mut numbers = Vec::new();
        let mut elements = Vec::new();
        for element in &body.elements {
            numbers.push(elements.len());
            if element.class != PORT_CLASS {
                elements.push(element.clone());
            }
        }
        let port = |Port { element, port }| Port { element: numbers[element], port };
        let mut pattern = PatternGraph { elements, ..PatternGraph::default() };
        for c in &body.connections {
            match (is_open(c.from.element), is_open(c.to.element)) {
                (true, true) => pattern.through.push((c.from.port, c.to.port)),
                (true, false) => pattern.inputs.push((c.from.port, port(c.to))),
                (false, true) => pattern.outputs.push((port(c.from), c.to.port)),
                (false, false) => pattern.links.push((port(c.from), port(c.to))),
            }
        }
        pattern
    }

    fn has_input(&self, input: usize) -> bool {
        let through = self.through.iter().map(|(input, _)| input);
        self.inputs.iter().map(|(input, _)| input).chain(through).any(|&known| known == input)
    }

    fn has_output(&self, output: usize) -> bool {
        let through = self.through.iter().map(|(_, output)| output);
        self.outputs.iter().map(|(_, output)| output).chain(through).any(|&known| known == output)
    }
}

/// Returns the patterns of a file: each pair of compound classes `NAME` and `NAME_Replacement`.
pub fn patterns(tree: &Tree, classes: &dyn ClassInfo) -> (Vec<Pattern>, Diagnostics) {
    let (compounds, diagnostics) = compounds(tree, classes);
    let pair = |second: &crate::expand::Compound| {
        let name = second.name.strip_suffix("_Replacement")?;
        let first = compounds.iter().find(|first| first.name == name)?;
        Some(Pattern {
            name: name.to_owned(),
            span: second.span,
            pattern: PatternGraph::new(first.body.clone()),
            replacement: PatternGraph::new(second.body.clone()),
        })
    };
    (compounds.iter().filter_map(pair).collect(), diagnostics)
}

/// Result of [`transform`].
#[derive(Debug)]
pub struct TransformOutput {
    /// The graph.
    pub graph: FlatGraph,
    /// Number of replacements.
    pub replaced: usize,
    /// Errors in the patterns.
    pub diagnostics: Diagnostics,
}

/// Replaces patterns until none matches; each time, the first pattern that matches.
///
/// An argument such as `$a` matches any argument, but the same one everywhere in a pattern. A
/// pattern does not match elements that are all from its own replacements.
pub fn transform(graph: &FlatGraph, patterns: &[Pattern]) -> TransformOutput {
    let mut diagnostics = Diagnostics::new();
    let usable: Vec<&Pattern> =
        patterns.iter().filter(|pattern| pattern.is_usable(&mut diagnostics)).collect();
    let mut rewriter = Rewriter {
        created_by: vec![usize::MAX; graph.elements.len()],
        editor: GraphEditor::new(graph),
        numbers: HashMap::new(),
        holes: Vec::new(),
        names: graph.elements.iter().map(|it| it.name.clone()).collect(),
        prefixes: graph.elements.iter().map(|it| first_part(&it.name).to_owned()).collect(),
    };
    let limit = MAX_REPLACEMENTS + MAX_REPLACEMENTS_PER_ELEMENT * graph.elements.len();
    let mut replaced = 0;
    let most = graph.elements.len() + MAX_GROWTH;
    'replace: while replaced < limit && rewriter.editor.elements.len() < most {
        for (index, pattern) in usable.iter().enumerate() {
            let mut search = Search::new(&rewriter.editor, &pattern.pattern);
            let is_own = |map: &[usize]| map.iter().all(|&at| rewriter.created_by[at] == index);
            let Some(found) = search.find(&is_own) else {
                if search.is_exhausted() {
                    let message = format!("pattern '{}' has too many near matches", pattern.name);
                    diagnostics.push(Diagnostic::error(pattern.span, message));
                    break 'replace;
                }
                continue;
            };
            rewriter.replace(pattern, index, &found);
            replaced += 1;
            continue 'replace;
        }
        break;
    }
    if replaced == limit || rewriter.editor.elements.len() >= most {
        let names: Vec<_> = usable.iter().map(|pattern| format!("'{}'", pattern.name)).collect();
        let message = format!("replacements never end: {}", names.join(", "));
        diagnostics.push(Diagnostic::error(None, message));
    }
    TransformOutput { graph: rewriter.editor.finish(), replaced, diagnostics }
}

impl Pattern {
    /// Whether the pattern can match, and its replacement has all of its ports; reports errors.
    fn is_usable(&self, diagnostics: &mut Diagnostics) -> bool {
        let (old, new) = (&self.pattern, &self.replacement);
        let input = old.inputs.iter().map(|&(input, _)| input).find(|&i| !new.has_input(i));
        let output = old.outputs.iter().map(|&(_, output)| output).find(|&o| !new.has_output(o));
        if old.elements.len() > MAX_PATTERN {
            let message = format!("pattern '{}' has more than {MAX_PATTERN} elements", self.name);
            diagnostics.push(Diagnostic::error(self.span, message));
            return false;
        }
        let lost = input.map(|i| ("input", i)).or(output.map(|o| ("output", o)));
        if let Some((side, port)) = lost {
            let message =
                format!("{side} {port} of pattern '{}' is missing in its replacement", self.name);
            diagnostics.push(Diagnostic::error(self.span, message));
        }
        lost.is_none() && !old.elements.is_empty() && old.through.is_empty()
    }
}

/// A graph whose patterns are being replaced.
struct Rewriter {
    editor: GraphEditor,
    /// Index of the pattern whose replacement has created each element; `usize::MAX` for others.
    created_by: Vec<usize>,
    /// Number of the last replacement of each pattern, by the pattern's name.
    numbers: HashMap<String, usize>,
    /// Positions of removed elements that no other has, the one that was left last at the end.
    holes: Vec<usize>,
    /// The names of the elements.
    names: HashSet<String>,
    /// The text before the first slash of all names that elements have had.
    prefixes: HashSet<String>,
}

impl Rewriter {
    /// Replaces one match of the pattern with this index.
    fn replace(&mut self, pattern: &Pattern, index: usize, found: &Match) {
        let old_names = self.old_names(pattern, found);
        let first = found.map.iter().copied().min().unwrap_or_default();
        let prefix = self.prefix(&pattern.name);
        for &at in &found.map {
            self.names.remove(&self.editor.elements[at].name);
            self.editor.remove(at);
            self.holes.push(self.editor.position(at));
        }
        // In Click the replacement is a compound first, which has a place of its own meanwhile.
        let whole = self.holes.pop();
        let replacement = &pattern.replacement;
        let mut made = Vec::new();
        for it in &replacement.elements {
            let inherited = old_names.get(&it.name).filter(|name| !self.names.contains(*name));
            let name = inherited.cloned().unwrap_or_else(|| format!("{prefix}/{}", it.name));
            let config = bindings::substitute(&it.config, &found.bindings);
            let at = self.editor.add(&name, &it.class, &config, self.editor.elements[first].span);
            if let Some(hole) = self.holes.pop() {
                self.editor.set_position(at, hole);
            }
            self.names.insert(name);
            made.push(at);
            self.created_by.push(index);
        }
        self.holes.extend(whole);
        let port = |Port { element, port }| Port { element: made[element], port };
        for &(from, to) in &replacement.links {
            self.editor.link(port(from), port(to));
        }
        for &(outside, input) in &found.entries {
            for &(_, to) in replacement.inputs.iter().filter(|(known, _)| *known == input) {
                self.editor.link(outside, port(to));
            }
            for &(_, output) in replacement.through.iter().filter(|(known, _)| *known == input) {
                for &(_, end) in found.exits.iter().filter(|(known, _)| *known == output) {
                    self.editor.link(outside, end);
                }
            }
        }
        for &(output, outside) in &found.exits {
            for &(from, _) in replacement.outputs.iter().filter(|(_, known)| *known == output) {
                self.editor.link(port(from), outside);
            }
        }
    }

    /// Returns the names that elements of the replacement take over: those of the matched elements,
    /// by the name of the element in the pattern.
    fn old_names(&self, pattern: &Pattern, found: &Match) -> HashMap<String, String> {
        let elements = pattern.pattern.elements.iter().zip(&found.map);
        elements.map(|(it, &at)| (it.name.clone(), self.editor.elements[at].name.clone())).collect()
    }

    /// Returns `NAME@N` with the next number N for which no element's name has this prefix.
    fn prefix(&mut self, name: &str) -> String {
        let number = self.numbers.entry(name.to_owned()).or_insert(0);
        loop {
            *number += 1;
            let prefix = format!("{name}@{number}");
            if self.prefixes.insert(prefix.clone()) {
                return prefix;
            }
        }
    }
}

fn first_part(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}
