//! Edits a flat graph: elements keep their indices until the edit is finished.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::flat::{ConfigOrigin, Connection, FlatElement, FlatGraph, Port};
use crate::source::Span;

/// A flat graph that is being edited.
pub(super) struct GraphEditor {
    pub(super) elements: Vec<FlatElement>,
    alive: Vec<bool>,
    /// Sort key of each element in the finished graph; elements with equal keys stay in order.
    positions: Vec<usize>,
    /// Every connection with its arrow and its age, sorted by output, and sorted by input.
    out: BTreeMap<(Port, Port), (Span, usize)>,
    into: BTreeSet<(Port, Port)>,
    /// Every name that an element has had.
    names: HashSet<String>,
    /// The age of the next connection.
    next_age: usize,
    rest: FlatGraph,
}

impl GraphEditor {
    pub(super) fn new(graph: &FlatGraph) -> Self {
        let rest = FlatGraph { elements: Vec::new(), connections: Vec::new(), ..graph.clone() };
        let out = graph.connections.iter().map(|c| ((c.from, c.to), (c.span, c.age))).collect();
        let next_age = graph.connections.iter().map(|c| c.age + 1).max().unwrap_or(0);
        let into = graph.connections.iter().map(|c| (c.to, c.from)).collect();
        let elements = graph.elements.clone();
        let count = elements.len();
        let (alive, positions) = (vec![true; count], (0..count).collect());
        let names = elements.iter().map(|element| element.name.clone()).collect();
        GraphEditor { elements, alive, positions, out, into, names, next_age, rest }
    }

    /// Returns the graph without the removed elements, with sorted connections.
    pub(super) fn finish(self) -> FlatGraph {
        let mut order: Vec<usize> = self.live().collect();
        order.sort_by_key(|&at| (self.positions[at], at));
        let mut numbers = vec![0; self.elements.len()];
        order.iter().enumerate().for_each(|(number, &at)| numbers[at] = number);
        let elements = order.iter().map(|&at| self.elements[at].clone()).collect();
        let port = |Port { element, port }| Port { element: numbers[element], port };
        let connection =
            |((from, to), (span, age))| Connection { from: port(from), to: port(to), span, age };
        let mut connections: Vec<_> = self.out.into_iter().map(connection).collect();
        connections.sort_by_key(|c| (c.to, c.from));
        FlatGraph { elements, connections, ..self.rest }
    }

    /// Returns the elements that are not removed.
    pub(super) fn live(&self) -> impl Iterator<Item = usize> + use<> {
        let alive: Vec<_> = (0..self.elements.len()).filter(|&at| self.alive[at]).collect();
        alive.into_iter()
    }

    /// Returns the elements of a class that are not removed.
    pub(super) fn with_class(&self, class: &str) -> Vec<usize> {
        self.live().filter(|&at| self.elements[at].class == class).collect()
    }

    pub(super) fn is_alive(&self, element: usize) -> bool {
        self.alive[element]
    }

    /// Returns `name :: Class`, as messages show an element.
    pub(super) fn label(&self, element: usize) -> String {
        format!("{} :: {}", self.elements[element].name, self.elements[element].class)
    }

    pub(super) fn add(&mut self, name: &str, class: &str, config: &str, span: Span) -> usize {
        self.alive.push(true);
        self.names.insert(name.to_owned());
        self.positions.push(self.elements.len());
        self.elements.push(FlatElement {
            name: name.to_owned(),
            class: class.to_owned(),
            config: config.to_owned(),
            config_span: None,
            span,
            origin: ConfigOrigin::default(),
        });
        self.elements.len() - 1
    }

    /// Returns the position of an element in the finished graph, also of a removed one.
    pub(super) fn position(&self, element: usize) -> usize {
        self.positions[element]
    }

    /// Gives an element a position in the finished graph that no other one has.
    pub(super) fn set_position(&mut self, element: usize, position: usize) {
        self.positions[element] = position;
    }

    /// Adds an element with a generated name: `Class@N`.
    pub(super) fn add_anonymous(&mut self, class: &str, config: &str, span: Span) -> usize {
        let first = self.live().count() + 1;
        let name = self.free_name(&format!("{class}@"), first);
        self.add(&name, class, config, span)
    }

    /// Returns the first of `prefixN`, from N = `first` on, that no element has or has had.
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

    /// Removes an element and its connections.
    pub(super) fn remove(&mut self, element: usize) {
        self.alive[element] = false;
        for (from, to) in self.outgoing(element) {
            self.unlink(from, to);
        }
        for (from, to) in self.incoming(element) {
            self.unlink(from, to);
        }
    }

    pub(super) fn link(&mut self, from: Port, to: Port) {
        let span = self.elements[from.element].span;
        self.out.entry((from, to)).or_insert((span, self.next_age));
        self.next_age += 1;
        self.into.insert((to, from));
    }

    pub(super) fn unlink(&mut self, from: Port, to: Port) {
        self.out.remove(&(from, to));
        self.into.remove(&(to, from));
    }

    pub(super) fn is_linked(&self, from: Port, to: Port) -> bool {
        self.out.contains_key(&(from, to))
    }

    /// Returns the connections from an element, sorted by output.
    pub(super) fn outgoing(&self, element: usize) -> Vec<(Port, Port)> {
        let range = (first(element), FIRST)..(first(element + 1), FIRST);
        self.out.range(range).map(|(&link, _)| link).collect()
    }

    /// Returns the connections to an element, sorted by input.
    pub(super) fn incoming(&self, element: usize) -> Vec<(Port, Port)> {
        let range = (first(element), FIRST)..(first(element + 1), FIRST);
        self.into.range(range).map(|&(to, from)| (from, to)).collect()
    }

    /// Returns the inputs that an output is connected to.
    pub(super) fn targets(&self, from: Port) -> Vec<Port> {
        let range = (from, FIRST)..(next(from), FIRST);
        self.out.range(range).map(|(&(_, to), _)| to).collect()
    }

    /// Returns the outputs that are connected to an input.
    pub(super) fn sources(&self, to: Port) -> Vec<Port> {
        let range = (to, FIRST)..(next(to), FIRST);
        self.into.range(range).map(|&(_, from)| from).collect()
    }

    /// Returns an element's numbers of inputs and outputs: one more than the highest connected
    /// port.
    pub(super) fn ports(&self, element: usize) -> (usize, usize) {
        let inputs = self.incoming(element).last().map_or(0, |(_, to)| to.port + 1);
        let outputs = self.outgoing(element).last().map_or(0, |(from, _)| from.port + 1);
        (inputs, outputs)
    }

    /// Moves the connections of one input to another.
    pub(super) fn redirect_input(&mut self, old: Port, new: Port) {
        for from in self.sources(old) {
            self.unlink(from, old);
            self.link(from, new);
        }
    }

    /// Moves the connections of one output to another.
    pub(super) fn redirect_output(&mut self, old: Port, new: Port) {
        for to in self.targets(old) {
            self.unlink(old, to);
            self.link(new, to);
        }
    }

    /// Inserts an element with one input and one output before an input.
    pub(super) fn insert_before(&mut self, element: usize, at: Port) {
        self.redirect_input(at, Port { element, port: 0 });
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
