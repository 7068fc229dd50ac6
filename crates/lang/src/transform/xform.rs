//! Patterns of elements replaced by others, until none is left.

mod matching;
mod words;

use std::collections::{HashMap, HashSet};

use super::edit::Edit;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::expand::{ClassInfo, OPEN, compounds};
use crate::flat::{Flat, FlatElement, Port};
use crate::source::Span;
use crate::tree::Tree;
use matching::{Found, Search};

/// More replacements than this, and so many more for each element, are taken for patterns that
/// never end.
const MOST: usize = 1000;
const MOST_EACH: usize = 16;
/// Larger graphs are taken for patterns that never end.
const LARGEST_GRAPH: usize = 200_000;

/// More elements than this in a pattern are taken for a mistake.
const LARGEST: usize = 500;

/// A pattern and what replaces it.
#[derive(Clone, Debug)]
pub struct Pattern {
    name: String,
    span: Span,
    pattern: Shape,
    replacement: Shape,
}

impl Pattern {
    /// The other way round: what replaced becomes the pattern.
    pub fn reversed(self) -> Self {
        Pattern { pattern: self.replacement, replacement: self.pattern, ..self }
    }
}

/// The body of a compound class, its ends apart from its elements.
#[derive(Clone, Debug, Default)]
struct Shape {
    elements: Vec<FlatElement>,
    links: Vec<(Port, Port)>,
    /// Input of the body, and where it leads.
    inputs: Vec<(usize, Port)>,
    /// Where an output of the body comes from, and which.
    outputs: Vec<(Port, usize)>,
    /// An input that leads to an output.
    across: Vec<(usize, usize)>,
}

impl Shape {
    fn new(body: Flat) -> Self {
        let is_open = |at: usize| body.elements[at].class == OPEN;
        let mut numbers = Vec::new();
        let mut elements = Vec::new();
        for element in &body.elements {
            numbers.push(elements.len());
            if element.class != OPEN {
                elements.push(element.clone());
            }
        }
        let port = |Port { element, port }| Port { element: numbers[element], port };
        let mut shape = Shape { elements, ..Shape::default() };
        for c in &body.connections {
            match (is_open(c.from.element), is_open(c.to.element)) {
                (true, true) => shape.across.push((c.from.port, c.to.port)),
                (true, false) => shape.inputs.push((c.from.port, port(c.to))),
                (false, true) => shape.outputs.push((port(c.from), c.to.port)),
                (false, false) => shape.links.push((port(c.from), port(c.to))),
            }
        }
        shape
    }

    fn has_input(&self, input: usize) -> bool {
        let across = self.across.iter().map(|(input, _)| input);
        self.inputs.iter().map(|(input, _)| input).chain(across).any(|&known| known == input)
    }

    fn has_output(&self, output: usize) -> bool {
        let across = self.across.iter().map(|(_, output)| output);
        self.outputs.iter().map(|(_, output)| output).chain(across).any(|&known| known == output)
    }
}

/// The patterns of a file: each pair of compound classes `NAME` and `NAME_Replacement`.
pub fn patterns(tree: &Tree, classes: &dyn ClassInfo) -> (Vec<Pattern>, Diagnostics) {
    let (compounds, found) = compounds(tree, classes);
    let pair = |second: &crate::expand::Compound| {
        let name = second.name.strip_suffix("_Replacement")?;
        let first = compounds.iter().find(|first| first.name == name)?;
        Some(Pattern {
            name: name.to_owned(),
            span: second.span,
            pattern: Shape::new(first.body.clone()),
            replacement: Shape::new(second.body.clone()),
        })
    };
    (compounds.iter().filter_map(pair).collect(), found)
}

/// A graph whose patterns are replaced.
#[derive(Debug)]
pub struct Transformed {
    /// The graph.
    pub graph: Flat,
    /// How many replacements were made.
    pub replaced: usize,
    /// What is wrong with the patterns.
    pub found: Diagnostics,
}

/// Replaces patterns as long as one is found; each time, the first pattern that is.
///
/// Arguments such as `$a` match any argument, the same one everywhere in a pattern. What a pattern
/// has put in alone does not match it again.
pub fn transform(graph: &Flat, patterns: &[Pattern]) -> Transformed {
    let mut found = Diagnostics::new();
    let usable: Vec<&Pattern> =
        patterns.iter().filter(|pattern| pattern.is_usable(&mut found)).collect();
    let mut work = Work {
        makers: vec![usize::MAX; graph.elements.len()],
        edit: Edit::new(graph),
        numbers: HashMap::new(),
        names: graph.elements.iter().map(|it| it.name.clone()).collect(),
        firsts: graph.elements.iter().map(|it| first_part(&it.name).to_owned()).collect(),
    };
    let limit = MOST + MOST_EACH * graph.elements.len();
    let mut replaced = 0;
    let most = graph.elements.len() + LARGEST_GRAPH;
    'again: while replaced < limit && work.edit.elements.len() < most {
        for (maker, pattern) in usable.iter().enumerate() {
            let mut search = Search::new(&work.edit, &pattern.pattern);
            let own = |map: &[usize]| map.iter().all(|&at| work.makers[at] == maker);
            let Some(one) = search.find(&own) else {
                if search.gave_up() {
                    let message = format!("pattern '{}' has too many near matches", pattern.name);
                    found.push(Diagnostic::error(pattern.span, message));
                    break 'again;
                }
                continue;
            };
            work.replace(pattern, maker, &one);
            replaced += 1;
            continue 'again;
        }
        break;
    }
    if replaced == limit || work.edit.elements.len() >= most {
        let names: Vec<_> = usable.iter().map(|pattern| format!("'{}'", pattern.name)).collect();
        let message = format!("replacements never end: {}", names.join(", "));
        found.push(Diagnostic::error(None, message));
    }
    Transformed { graph: work.edit.finish(), replaced, found }
}

impl Pattern {
    /// Whether it can match, and no connection to a match would be lost.
    fn is_usable(&self, found: &mut Diagnostics) -> bool {
        let (old, new) = (&self.pattern, &self.replacement);
        let input = old.inputs.iter().map(|&(input, _)| input).find(|&i| !new.has_input(i));
        let output = old.outputs.iter().map(|&(_, output)| output).find(|&o| !new.has_output(o));
        if old.elements.len() > LARGEST {
            let message = format!("pattern '{}' has more than {LARGEST} elements", self.name);
            found.push(Diagnostic::error(self.span, message));
            return false;
        }
        let lost = input.map(|i| ("input", i)).or(output.map(|o| ("output", o)));
        if let Some((side, port)) = lost {
            let message =
                format!("{side} {port} of pattern '{}' is missing in its replacement", self.name);
            found.push(Diagnostic::error(self.span, message));
        }
        lost.is_none() && !old.elements.is_empty() && old.across.is_empty()
    }
}

struct Work {
    edit: Edit,
    /// By element: the pattern that put it there.
    makers: Vec<usize>,
    /// By pattern: the number of its last replacement.
    numbers: HashMap<String, usize>,
    /// The names of the elements.
    names: HashSet<String>,
    /// What stands before the first slash of a name that an element has had.
    firsts: HashSet<String>,
}

impl Work {
    fn replace(&mut self, pattern: &Pattern, maker: usize, found: &Found) {
        let old_names = self.old_names(pattern, found);
        let first = found.map.iter().copied().min().unwrap_or_default();
        let prefix = self.prefix(&pattern.name);
        for &at in &found.map {
            self.names.remove(&self.edit.elements[at].name);
            self.edit.remove(at);
        }
        let shape = &pattern.replacement;
        let mut made = Vec::new();
        for it in &shape.elements {
            let inherited = old_names.get(&it.name).filter(|name| !self.names.contains(*name));
            let name = inherited.cloned().unwrap_or_else(|| format!("{prefix}/{}", it.name));
            let config = words::substitute(&it.config, &found.bindings);
            let at = self.edit.add(&name, &it.class, &config, self.edit.elements[first].span);
            self.edit.place_at(at, first);
            self.names.insert(name);
            made.push(at);
            self.makers.push(maker);
        }
        let port = |Port { element, port }| Port { element: made[element], port };
        for &(from, to) in &shape.links {
            self.edit.link(port(from), port(to));
        }
        for &(outside, input) in &found.entries {
            for &(_, to) in shape.inputs.iter().filter(|(known, _)| *known == input) {
                self.edit.link(outside, port(to));
            }
            for &(_, output) in shape.across.iter().filter(|(known, _)| *known == input) {
                for &(_, end) in found.exits.iter().filter(|(known, _)| *known == output) {
                    self.edit.link(outside, end);
                }
            }
        }
        for &(output, outside) in &found.exits {
            for &(from, _) in shape.outputs.iter().filter(|(_, known)| *known == output) {
                self.edit.link(port(from), outside);
            }
        }
    }

    /// The names that elements of the replacement take over: those of the matched elements that are
    /// called the same in the pattern.
    fn old_names(&self, pattern: &Pattern, found: &Found) -> HashMap<String, String> {
        let elements = pattern.pattern.elements.iter().zip(&found.map);
        elements.map(|(it, &at)| (it.name.clone(), self.edit.elements[at].name.clone())).collect()
    }

    /// `NAME@N`, N being the next number that begins no element's name.
    fn prefix(&mut self, name: &str) -> String {
        let number = self.numbers.entry(name.to_owned()).or_insert(0);
        loop {
            *number += 1;
            let prefix = format!("{name}@{number}");
            if self.firsts.insert(prefix.clone()) {
                return prefix;
            }
        }
    }
}

fn first_part(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}
