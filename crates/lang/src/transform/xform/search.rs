//! Subgraph matching: searches a graph for elements that match a pattern.
//!
//! The search chooses elements one by one, connected ones first, and backtracks if a connection or
//! an argument forbids a choice. A complete choice is a match if every connection across its
//! boundary belongs to a port of the pattern.

use super::PatternGraph;
use super::bindings::{Bindings, unify};
use crate::args;
use crate::flat::Port;
use crate::transform::editor::GraphEditor;

/// Most choices that one search tries.
const MAX_TRIES: usize = 5_000_000;

/// A match.
#[derive(Debug)]
pub(super) struct Match {
    /// Element of the graph for each element of the pattern.
    pub(super) map: Vec<usize>,
    /// Values of variables.
    pub(super) bindings: Bindings,
    /// Outputs outside the match that lead to it, and the pattern's inputs to which they belong.
    pub(super) entries: Vec<(Port, usize)>,
    /// The pattern's outputs, and the inputs outside the match to which they lead.
    pub(super) exits: Vec<(usize, Port)>,
}

/// A search for one pattern in one graph.
pub(super) struct Search<'a> {
    editor: &'a GraphEditor,
    pattern: &'a PatternGraph,
    /// The arguments of each element of the pattern.
    args: Vec<Vec<String>>,
    /// The pattern's elements in the order in which they are chosen.
    order: Vec<usize>,
    /// The element of the graph chosen for each element of the pattern.
    map: Vec<Option<usize>>,
    /// The element of the pattern for which each element of the graph is chosen.
    back: Vec<Option<usize>>,
    bindings: Bindings,
    tries_left: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(editor: &'a GraphEditor, pattern: &'a PatternGraph) -> Self {
        let words = |config: &str| args::split(config).into_iter().map(|arg| arg.text).collect();
        Search {
            editor,
            pattern,
            args: pattern.elements.iter().map(|it| words(&it.config)).collect(),
            order: order(pattern),
            map: vec![None; pattern.elements.len()],
            back: vec![None; editor.elements.len()],
            bindings: Bindings::new(),
            tries_left: MAX_TRIES,
        }
    }

    /// Returns the first match whose elements are not `is_own`.
    pub(super) fn find(&mut self, is_own: &dyn Fn(&[usize]) -> bool) -> Option<Match> {
        self.choose(0, is_own)
    }

    /// Whether the search has ended because it has tried too many choices.
    pub(super) fn is_exhausted(&self) -> bool {
        self.tries_left == 0
    }

    /// Chooses the elements from `depth` on in the order of the search.
    fn choose(&mut self, depth: usize, is_own: &dyn Fn(&[usize]) -> bool) -> Option<Match> {
        let Some(&element) = self.order.get(depth) else {
            let map: Vec<usize> = self.map.iter().copied().flatten().collect();
            return if is_own(&map) { None } else { self.boundary(map) };
        };
        for candidate in self.candidates(element) {
            if self.tries_left == 0 {
                return None;
            }
            self.tries_left -= 1;
            if self.back[candidate].is_some()
                || self.editor.elements[candidate].class != self.pattern.elements[element].class
            {
                continue;
            }
            self.map[element] = Some(candidate);
            self.back[candidate] = Some(element);
            let mut trail = Vec::new();
            let config = &self.editor.elements[candidate].config;
            if unify(&self.args[element], config, &mut self.bindings, &mut trail)
                && self.fits(element, candidate)
                && let Some(found) = self.choose(depth + 1, is_own)
            {
                return Some(found);
            }
            trail.iter().for_each(|name| drop(self.bindings.remove(name)));
            self.map[element] = None;
            self.back[candidate] = None;
        }
        None
    }

    /// Returns the candidates for `element`: the elements connected to a chosen neighbour, or all
    /// elements if no neighbour is chosen.
    fn candidates(&self, element: usize) -> Vec<usize> {
        for &(from, to) in &self.pattern.links {
            let known = |port: Port| self.map[port.element].map(|at| Port { element: at, ..port });
            let ends: Vec<Port> = match (known(from), known(to)) {
                (Some(from), None) if to.element == element => self.editor.targets(from),
                (None, Some(to)) if from.element == element => self.editor.sources(to),
                _ => continue,
            };
            return ends.into_iter().map(|port| port.element).collect();
        }
        self.editor.live().collect()
    }

    /// Whether the connections between a candidate and the elements chosen before it are those of
    /// the pattern.
    fn fits(&self, element: usize, candidate: usize) -> bool {
        let image = |port: Port| self.map[port.element].map(|at| Port { element: at, ..port });
        let wanted = self.pattern.links.iter().all(|&(from, to)| {
            let near = from.element == element || to.element == element;
            match (near, image(from), image(to)) {
                (true, Some(from), Some(to)) => self.editor.is_linked(from, to),
                _ => true,
            }
        });
        let origin = |port: Port| self.back[port.element].map(|at| Port { element: at, ..port });
        let links =
            self.editor.outgoing(candidate).into_iter().chain(self.editor.incoming(candidate));
        wanted
            && links.into_iter().all(|(from, to)| match (origin(from), origin(to)) {
                (Some(from), Some(to)) => self.pattern.links.contains(&(from, to)),
                _ => true,
            })
    }

    /// Assigns the connections across the boundary to ports of the pattern. There is no match if a
    /// connection has no port, or a port of the pattern has no connection.
    fn boundary(&self, map: Vec<usize>) -> Option<Match> {
        let (mut entries, mut exits) = (Vec::new(), Vec::new());
        for (element, &at) in map.iter().enumerate() {
            for (from, to) in self.editor.incoming(at) {
                if self.back[from.element].is_none() {
                    let entry = (from, self.input(from, Port { element, ..to }, &map)?);
                    if !entries.contains(&entry) {
                        entries.push(entry);
                    }
                }
            }
            for (from, to) in self.editor.outgoing(at) {
                if self.back[to.element].is_none() {
                    let exit = (self.output(Port { element, ..from }, to, &map)?, to);
                    if !exits.contains(&exit) {
                        exits.push(exit);
                    }
                }
            }
        }
        let all_in = self.pattern.inputs.iter().all(|(i, _)| entries.iter().any(|(_, e)| e == i));
        let all_out = self.pattern.outputs.iter().all(|(_, o)| exits.iter().any(|(e, _)| e == o));
        let bindings = self.bindings.clone();
        (all_in && all_out).then_some(Match { map, bindings, entries, exits })
    }

    /// Returns the pattern's input for a connection from `outside` to `inside`: the first input
    /// that leads to `inside`, and whose other targets `outside` is connected to as well.
    fn input(&self, outside: Port, inside: Port, map: &[usize]) -> Option<usize> {
        let all = &self.pattern.inputs;
        let complete = |&input: &usize| {
            let mut ends = all.iter().filter(|(known, _)| *known == input);
            ends.all(|&(_, to)| self.editor.is_linked(outside, image(to, map)))
        };
        let here = all.iter().filter(|(_, to)| *to == inside).map(|&(input, _)| input);
        here.filter(complete).min()
    }

    /// Returns the pattern's output for a connection from `inside` to `outside`, as for inputs.
    fn output(&self, inside: Port, outside: Port, map: &[usize]) -> Option<usize> {
        let all = &self.pattern.outputs;
        let complete = |&output: &usize| {
            let mut ends = all.iter().filter(|(_, known)| *known == output);
            ends.all(|&(from, _)| self.editor.is_linked(image(from, map), outside))
        };
        let here = all.iter().filter(|(from, _)| *from == inside).map(|&(_, output)| output);
        here.filter(complete).min()
    }
}

fn image(port: Port, map: &[usize]) -> Port {
    Port { element: map[port.element], ..port }
}

/// Returns the elements of a pattern in the order of the search: each after an element that it is
/// connected to, if possible.
fn order(pattern: &PatternGraph) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < pattern.elements.len() {
        let is_next = |at: &usize| {
            let near = |a: usize, b: usize| order.contains(&a) && b == *at;
            let linked = pattern.links.iter().any(|&(from, to)| {
                near(from.element, to.element) || near(to.element, from.element)
            });
            linked && !order.contains(at)
        };
        let all = 0..pattern.elements.len();
        let next = all.clone().find(is_next).or(all.clone().find(|at| !order.contains(at)));
        order.extend(next);
    }
    order
}
