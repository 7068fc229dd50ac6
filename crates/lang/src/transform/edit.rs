//! A flat graph while it is changed: elements keep their numbers until the end.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::flat::{Connection, Flat, FlatElement, Origin, Port};
use crate::source::Span;

/// A graph under change.
pub(super) struct Edit {
    pub(super) elements: Vec<FlatElement>,
    alive: Vec<bool>,
    /// Where each is to stand in the end: elements of the same place one behind the other.
    places: Vec<usize>,
    /// Every connection, by the output and by the input that it joins.
    out: BTreeMap<(Port, Port), Span>,
    into: BTreeSet<(Port, Port)>,
    /// Every name that an element has had.
    names: HashSet<String>,
    rest: Flat,
}

impl Edit {
    pub(super) fn new(graph: &Flat) -> Self {
        let rest = Flat { elements: Vec::new(), connections: Vec::new(), ..graph.clone() };
        let out = graph.connections.iter().map(|c| ((c.from, c.to), c.span)).collect();
        let into = graph.connections.iter().map(|c| (c.to, c.from)).collect();
        let elements = graph.elements.clone();
        let count = elements.len();
        let (alive, places) = (vec![true; count], (0..count).collect());
        let names = elements.iter().map(|element| element.name.clone()).collect();
        Edit { elements, alive, places, out, into, names, rest }
    }

    /// The graph without what was removed, connections in their order.
    pub(super) fn finish(self) -> Flat {
        let mut order: Vec<usize> = self.live().collect();
        order.sort_by_key(|&at| (self.places[at], at));
        let mut numbers = vec![0; self.elements.len()];
        order.iter().enumerate().for_each(|(number, &at)| numbers[at] = number);
        let elements = order.iter().map(|&at| self.elements[at].clone()).collect();
        let port = |Port { element, port }| Port { element: numbers[element], port };
        let connection = |((from, to), span)| Connection { from: port(from), to: port(to), span };
        let mut connections: Vec<_> = self.out.into_iter().map(connection).collect();
        connections.sort_by_key(|c| (c.to, c.from));
        Flat { elements, connections, ..self.rest }
    }

    /// The elements that are left.
    pub(super) fn live(&self) -> impl Iterator<Item = usize> + use<> {
        let alive: Vec<_> = (0..self.elements.len()).filter(|&at| self.alive[at]).collect();
        alive.into_iter()
    }

    /// The elements of a class that are left.
    pub(super) fn of_class(&self, class: &str) -> Vec<usize> {
        self.live().filter(|&at| self.elements[at].class == class).collect()
    }

    pub(super) fn is_alive(&self, element: usize) -> bool {
        self.alive[element]
    }

    /// `name :: Class`, as messages call an element.
    pub(super) fn label(&self, element: usize) -> String {
        format!("{} :: {}", self.elements[element].name, self.elements[element].class)
    }

    pub(super) fn add(&mut self, name: &str, class: &str, config: &str, span: Span) -> usize {
        self.alive.push(true);
        self.names.insert(name.to_owned());
        self.places.push(self.elements.len());
        self.elements.push(FlatElement {
            name: name.to_owned(),
            class: class.to_owned(),
            config: config.to_owned(),
            config_span: None,
            span,
            origin: Origin::default(),
        });
        self.elements.len() - 1
    }

    /// Has an element stand where another one stands.
    pub(super) fn place_at(&mut self, element: usize, other: usize) {
        self.places[element] = self.places[other];
    }

    /// An element of no name that a configuration gave: `Class@N`.
    pub(super) fn add_anonymous(&mut self, class: &str, config: &str, span: Span) -> usize {
        let first = self.live().count() + 1;
        let name = self.free_name(&format!("{class}@"), first);
        self.add(&name, class, config, span)
    }

    /// The first of `prefixN`, from `first` on, that no element has or has had.
    pub(super) fn free_name(&self, prefix: &str, first: usize) -> String {
        let mut number = first;
        loop {
            let name = format!("{prefix}{number}");
            if !self.names.contains(&name) {
                return name;
            }
            number += 1;
        }
    }

    /// Takes an element away, with its connections.
    pub(super) fn remove(&mut self, element: usize) {
        self.alive[element] = false;
        for (from, to) in self.leaving(element) {
            self.unlink(from, to);
        }
        for (from, to) in self.entering(element) {
            self.unlink(from, to);
        }
    }

    pub(super) fn link(&mut self, from: Port, to: Port) {
        let span = self.elements[from.element].span;
        self.out.entry((from, to)).or_insert(span);
        self.into.insert((to, from));
    }

    pub(super) fn unlink(&mut self, from: Port, to: Port) {
        self.out.remove(&(from, to));
        self.into.remove(&(to, from));
    }

    pub(super) fn is_linked(&self, from: Port, to: Port) -> bool {
        self.out.contains_key(&(from, to))
    }

    /// The connections from an element, by output.
    pub(super) fn leaving(&self, element: usize) -> Vec<(Port, Port)> {
        let range = (first(element), FIRST)..(first(element + 1), FIRST);
        self.out.range(range).map(|(&link, _)| link).collect()
    }

    /// The connections to an element, by input.
    pub(super) fn entering(&self, element: usize) -> Vec<(Port, Port)> {
        let range = (first(element), FIRST)..(first(element + 1), FIRST);
        self.into.range(range).map(|&(to, from)| (from, to)).collect()
    }

    /// The inputs that an output leads to.
    pub(super) fn after(&self, from: Port) -> Vec<Port> {
        let range = (from, FIRST)..(next(from), FIRST);
        self.out.range(range).map(|(&(_, to), _)| to).collect()
    }

    /// The outputs that lead to an input.
    pub(super) fn before(&self, to: Port) -> Vec<Port> {
        let range = (to, FIRST)..(next(to), FIRST);
        self.into.range(range).map(|&(_, from)| from).collect()
    }

    /// How many inputs and outputs are in use: one more than the highest.
    pub(super) fn ports(&self, element: usize) -> (usize, usize) {
        let inputs = self.entering(element).last().map_or(0, |(_, to)| to.port + 1);
        let outputs = self.leaving(element).last().map_or(0, |(from, _)| from.port + 1);
        (inputs, outputs)
    }

    /// What led to one input leads to another.
    pub(super) fn redirect(&mut self, old: Port, new: Port) {
        for from in self.before(old) {
            self.unlink(from, old);
            self.link(from, new);
        }
    }

    /// What came from one output comes from another.
    pub(super) fn resource(&mut self, old: Port, new: Port) {
        for to in self.after(old) {
            self.unlink(old, to);
            self.link(new, to);
        }
    }

    /// Puts an element with one input and one output before an input.
    pub(super) fn insert_before(&mut self, element: usize, at: Port) {
        self.redirect(at, Port { element, port: 0 });
        self.link(Port { element, port: 0 }, at);
    }
}

const FIRST: Port = Port { element: 0, port: 0 };

fn first(element: usize) -> Port {
    Port { element, port: 0 }
}

fn next(port: Port) -> Port {
    Port { port: port.port + 1, ..port }
}
