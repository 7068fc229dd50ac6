//! From a flat configuration to a plan that can be built, in explicit steps.
//!
//! Each step is a function from one plain data structure to the next:
//! [`classes::name`] → [`ports::resolve`] → [`carries::follow`] →
//! [`devices::find`] → [`assign::assign`] → `order::single` → [`fuse::find`] →
//! [`checksums::may_leave`];
//! [`explain`] prints each but the last.

pub mod assign;
pub mod carries;
pub mod checksums;
pub mod classes;
pub mod devices;
pub mod explain;
pub mod fuse;
pub(crate) mod order;
pub mod ports;
pub(crate) mod watch;

use crate::class::{Class, Role};
use crate::node::Target;
use castanet_lang::{FlatElement, Span};

/// Whether packets are pushed or pulled through a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// The upstream element decides when.
    Push,
    /// The downstream element decides when.
    Pull,
    /// Whatever the neighbours do.
    Agnostic,
}

impl Flow {
    /// The word that Click uses.
    pub fn word(self) -> &'static str {
        match self {
            Flow::Push => "push",
            Flow::Pull => "pull",
            Flow::Agnostic => "agnostic",
        }
    }
}

/// One element, with what is known of it so far.
pub struct Element {
    /// Its name in the flat configuration.
    pub name: String,
    /// Its class.
    pub class: &'static Class,
    /// The text between the parentheses.
    pub config: String,
    /// Where it is declared.
    pub span: Span,
    /// Where the parts of its text stand in the source.
    pub source: FlatElement,
    /// How each connected input works.
    pub inputs: Vec<Flow>,
    /// How each connected output works.
    pub outputs: Vec<Flow>,
}

/// One connection.
#[derive(Clone, Copy)]
pub struct Edge {
    /// Output of the upstream element.
    pub from: Target,
    /// Input of the downstream element.
    pub to: Target,
    /// Push or pull, once resolved.
    pub flow: Flow,
    /// Where it is written.
    pub span: Span,
}

/// The graph as far as it is known.
#[derive(Default)]
pub struct Graph {
    /// The elements, in the order of the flat configuration.
    pub elements: Vec<Element>,
    /// The connections.
    pub edges: Vec<Edge>,
    /// By element: indices of the edges that leave it.
    pub(crate) leaving: Vec<Vec<usize>>,
    /// By element: indices of the edges that enter it.
    pub(crate) entering: Vec<Vec<usize>>,
}

impl Graph {
    /// The element of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.elements.iter().position(|e| e.name == name)
    }

    /// `name :: Class`, as messages call an element: by the name of the class that
    /// the configuration says.
    pub fn label(&self, element: usize) -> String {
        let it = &self.elements[element];
        format!("{} :: {}", it.name, it.source.class)
    }

    /// The edges that leave `element`.
    pub fn out_edges(&self, element: usize) -> impl Iterator<Item = &Edge> {
        self.leaving[element].iter().map(|&i| &self.edges[i])
    }

    /// The edges that enter `element`.
    pub fn in_edges(&self, element: usize) -> impl Iterator<Item = &Edge> {
        self.entering[element].iter().map(|&i| &self.edges[i])
    }

    /// Whether no packet rests anywhere before it comes to `element`, so that it
    /// comes on the worker that made it.
    pub(crate) fn is_full_push(&self, element: usize) -> bool {
        let mut seen = vec![false; self.elements.len()];
        let mut above = vec![element];
        while let Some(element) = above.pop() {
            if self.elements[element].class.role == Role::Store {
                return false;
            }
            if !std::mem::replace(&mut seen[element], true) {
                above.extend(self.in_edges(element).map(|edge| edge.from.node));
            }
        }
        true
    }

    /// Notes which edges leave and enter which elements.
    pub(crate) fn link(&mut self) {
        self.leaving = vec![Vec::new(); self.elements.len()];
        self.entering = vec![Vec::new(); self.elements.len()];
        for (i, edge) in self.edges.iter().enumerate() {
            self.leaving[edge.from.node].push(i);
            self.entering[edge.to.node].push(i);
        }
    }
}

/// The element or compound that `name` means where `element` stands: in its
/// own compound first, then in those around it.
pub(crate) fn in_scope(graph: &Graph, element: &str, name: &str) -> Option<String> {
    let mut scope = element;
    loop {
        let outer = scope.rsplit_once('/').map(|(outer, _)| outer);
        let full = outer.map_or(name.to_owned(), |outer| format!("{outer}/{name}"));
        let inside = format!("{full}/");
        if graph.elements.iter().any(|e| e.name == full || e.name.starts_with(&inside)) {
            return Some(full);
        }
        scope = outer?;
    }
}
