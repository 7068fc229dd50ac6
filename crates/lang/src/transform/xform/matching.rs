//! Subgraph matching: which elements of a graph are a pattern.
//!
//! Elements are chosen one by one, connected ones first; a choice that a connection or an argument
//! forbids is taken back. A whole choice is a match if every connection across its edge goes through
//! a port of the pattern.

use super::Shape;
use super::words::{Bindings, unify};
use crate::args;
use crate::flat::Port;
use crate::transform::edit::Edit;

/// Choices that one search may try.
const FUEL: usize = 5_000_000;

/// A match.
#[derive(Debug)]
pub(super) struct Found {
    /// By element of the pattern: the element of the graph.
    pub(super) map: Vec<usize>,
    /// What variables stand for.
    pub(super) bindings: Bindings,
    /// Outputs outside the match that lead to it, and the pattern's inputs that they are.
    pub(super) entries: Vec<(Port, usize)>,
    /// The pattern's outputs, and the inputs outside the match that they lead to.
    pub(super) exits: Vec<(usize, Port)>,
}

/// A search for one pattern in one graph.
pub(super) struct Search<'a> {
    edit: &'a Edit,
    shape: &'a Shape,
    /// The arguments of each element of the pattern.
    args: Vec<Vec<String>>,
    /// The pattern's elements in the order in which they are chosen.
    order: Vec<usize>,
    /// By element of the pattern: what is chosen for it.
    map: Vec<Option<usize>>,
    /// By element of the graph: whose choice it is.
    back: Vec<Option<usize>>,
    bindings: Bindings,
    fuel: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(edit: &'a Edit, shape: &'a Shape) -> Self {
        let words = |config: &str| args::split(config).into_iter().map(|arg| arg.text).collect();
        Search {
            edit,
            shape,
            args: shape.elements.iter().map(|it| words(&it.config)).collect(),
            order: order(shape),
            map: vec![None; shape.elements.len()],
            back: vec![None; edit.elements.len()],
            bindings: Bindings::new(),
            fuel: FUEL,
        }
    }

    /// The first match that is not `own`.
    pub(super) fn find(&mut self, own: &dyn Fn(&[usize]) -> bool) -> Option<Found> {
        self.choose(0, own)
    }

    /// Whether the search ended before it was through.
    pub(super) fn gave_up(&self) -> bool {
        self.fuel == 0
    }

    fn choose(&mut self, depth: usize, own: &dyn Fn(&[usize]) -> bool) -> Option<Found> {
        let Some(&element) = self.order.get(depth) else {
            let map: Vec<usize> = self.map.iter().copied().flatten().collect();
            return if own(&map) { None } else { self.boundary(map) };
        };
        for candidate in self.candidates(element) {
            if self.fuel == 0 {
                return None;
            }
            self.fuel -= 1;
            if self.back[candidate].is_some()
                || self.edit.elements[candidate].class != self.shape.elements[element].class
            {
                continue;
            }
            self.map[element] = Some(candidate);
            self.back[candidate] = Some(element);
            let mut trail = Vec::new();
            let config = &self.edit.elements[candidate].config;
            if unify(&self.args[element], config, &mut self.bindings, &mut trail)
                && self.fits(element, candidate)
                && let Some(found) = self.choose(depth + 1, own)
            {
                return Some(found);
            }
            trail.iter().for_each(|name| drop(self.bindings.remove(name)));
            self.map[element] = None;
            self.back[candidate] = None;
        }
        None
    }

    /// The elements that may be `element`: what a chosen neighbour is connected to; without one,
    /// all.
    fn candidates(&self, element: usize) -> Vec<usize> {
        for &(from, to) in &self.shape.links {
            let known = |port: Port| self.map[port.element].map(|at| Port { element: at, ..port });
            let ends: Vec<Port> = match (known(from), known(to)) {
                (Some(from), None) if to.element == element => self.edit.after(from),
                (None, Some(to)) if from.element == element => self.edit.before(to),
                _ => continue,
            };
            return ends.into_iter().map(|port| port.element).collect();
        }
        self.edit.live().collect()
    }

    /// Whether the connections between a choice and those before it are those of the pattern.
    fn fits(&self, element: usize, candidate: usize) -> bool {
        let image = |port: Port| self.map[port.element].map(|at| Port { element: at, ..port });
        let wanted = self.shape.links.iter().all(|&(from, to)| {
            let near = from.element == element || to.element == element;
            match (near, image(from), image(to)) {
                (true, Some(from), Some(to)) => self.edit.is_linked(from, to),
                _ => true,
            }
        });
        let origin = |port: Port| self.back[port.element].map(|at| Port { element: at, ..port });
        let links = self.edit.leaving(candidate).into_iter().chain(self.edit.entering(candidate));
        wanted
            && links.into_iter().all(|(from, to)| match (origin(from), origin(to)) {
                (Some(from), Some(to)) => self.shape.links.contains(&(from, to)),
                _ => true,
            })
    }

    /// Finds the ports of the pattern by which packets come and go; without them, or if one of the
    /// pattern's is left, there is no match.
    fn boundary(&self, map: Vec<usize>) -> Option<Found> {
        let (mut entries, mut exits) = (Vec::new(), Vec::new());
        for (element, &at) in map.iter().enumerate() {
            for (from, to) in self.edit.entering(at) {
                if self.back[from.element].is_none() {
                    let entry = (from, self.input(from, Port { element, ..to }, &map)?);
                    if !entries.contains(&entry) {
                        entries.push(entry);
                    }
                }
            }
            for (from, to) in self.edit.leaving(at) {
                if self.back[to.element].is_none() {
                    let exit = (self.output(Port { element, ..from }, to, &map)?, to);
                    if !exits.contains(&exit) {
                        exits.push(exit);
                    }
                }
            }
        }
        let all_in = self.shape.inputs.iter().all(|(i, _)| entries.iter().any(|(_, e)| e == i));
        let all_out = self.shape.outputs.iter().all(|(_, o)| exits.iter().any(|(e, _)| e == o));
        let bindings = self.bindings.clone();
        (all_in && all_out).then_some(Found { map, bindings, entries, exits })
    }

    /// The pattern's input that a connection from `outside` comes through: the first one that leads
    /// there, and everywhere else where it leads there is a connection too.
    fn input(&self, outside: Port, inside: Port, map: &[usize]) -> Option<usize> {
        let all = &self.shape.inputs;
        let complete = |&input: &usize| {
            let mut ends = all.iter().filter(|(known, _)| *known == input);
            ends.all(|&(_, to)| self.edit.is_linked(outside, image(to, map)))
        };
        let here = all.iter().filter(|(_, to)| *to == inside).map(|&(input, _)| input);
        here.filter(complete).min()
    }

    fn output(&self, inside: Port, outside: Port, map: &[usize]) -> Option<usize> {
        let all = &self.shape.outputs;
        let complete = |&output: &usize| {
            let mut ends = all.iter().filter(|(_, known)| *known == output);
            ends.all(|&(from, _)| self.edit.is_linked(image(from, map), outside))
        };
        let here = all.iter().filter(|(from, _)| *from == inside).map(|&(_, output)| output);
        here.filter(complete).min()
    }
}

fn image(port: Port, map: &[usize]) -> Port {
    Port { element: map[port.element], ..port }
}

/// Each element after one that it is connected to, where there is one.
fn order(shape: &Shape) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < shape.elements.len() {
        let is_next = |at: &usize| {
            let near = |a: usize, b: usize| order.contains(&a) && b == *at;
            let linked = shape.links.iter().any(|&(from, to)| {
                near(from.element, to.element) || near(to.element, from.element)
            });
            linked && !order.contains(at)
        };
        let all = 0..shape.elements.len();
        let next = all.clone().find(is_next).or(all.clone().find(|at| !order.contains(at)));
        order.extend(next);
    }
    order
}
