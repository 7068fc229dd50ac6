//! From a flat configuration to a plan that can be built, in explicit steps.
//!
//! Each step is a function from one plain data structure to the next:
//! [`classes::name`] → [`ports::resolve`] → [`carries::follow`] → [`lints::find`] →
//! [`devices::find`] → [`assign::assign`] → `order::single` → [`fuse::find`] →
//! [`checksums::may_leave`];
//! [`explain`] prints each but the last.

use castanet_element::declaration::ElementDeclarations;
use castanet_element::fate::LossReason;
use castanet_element::flow::Flow;
use castanet_element::setup::{Configuration, PeerElement};
use std::collections::HashMap;

pub mod assign;
pub(crate) mod bypass;
pub mod carries;
pub mod checksums;
pub mod classes;
pub mod compilable;
pub mod dataflow;
pub mod devices;
mod entries;
pub mod explain;
pub mod fuse;
pub mod headers;
pub mod lints;
pub(crate) mod order;
pub(crate) mod partner;
pub mod ports;
pub mod resources;
pub(crate) mod signals;
pub mod target;
pub(crate) mod task;
pub(crate) mod watch;

use crate::graph::target::Target;
use castanet_element::class::{Class, Role};
use castanet_lang::{FlatElement, Span, args};

/// One element of the graph.
pub struct Element {
    /// Its name in the flat configuration.
    pub name: String,
    /// Its class.
    pub class: &'static Class,
    /// The text between the parentheses.
    pub config: String,
    /// Position of its declaration.
    pub span: Span,
    /// Positions of the parts of its text in the source.
    pub source: FlatElement,
    /// Processing of each connected input.
    pub inputs: Vec<Flow>,
    /// Processing of each connected output.
    pub outputs: Vec<Flow>,
    /// Handlers and reasons to drop that it has beside those of its class; known once it is built.
    pub declarations: ElementDeclarations,
}

impl Element {
    /// The indexes and the names of its reasons to drop.
    pub(crate) fn drop_reasons(&self) -> impl Iterator<Item = (u8, String)> {
        let own = self.declarations.reasons.iter().map(|(fate, it)| (*fate, it.name.clone()));
        let of_class = self.class.drop_reasons().into_iter().map(|(fate, name, _)| (fate, name));
        of_class.chain(own)
    }

    /// The reason for which its packets with this fate are lost.
    pub(crate) fn loss_reason(&self, fate: u8) -> LossReason {
        let own = self.declarations.reasons.iter().find(|(index, _)| *index == fate);
        own.map_or_else(|| self.class.loss_reason(fate), |(_, reason)| reason.clone())
    }

    /// All reasons for which its packets are lost, each with the index of the fate.
    pub(crate) fn loss_reasons(&self) -> impl Iterator<Item = (u8, LossReason)> {
        let of_class = self.class.loss_reasons(self.outputs.len());
        of_class.chain(self.declarations.reasons.iter().cloned())
    }

    /// Whether packets begin here, and do not come from another element.
    pub(crate) fn is_origin(&self) -> bool {
        matches!(self.class.role, Role::Source | Role::Duplex) && !self.inputs.contains(&Flow::Pull)
    }

    /// The network interface that it stands for.
    pub(crate) fn interface(&self) -> Option<String> {
        self.class.factory.device?;
        let first = args::split(&self.config).into_iter().next()?.text;
        Some(first.strip_prefix("DEVNAME ").unwrap_or(&first).trim().to_owned())
    }
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
    /// Its position in the source.
    pub span: Span,
}

/// The graph, as far as the steps have filled it in.
#[derive(Default)]
pub struct Graph {
    /// The elements, in the order of the flat configuration.
    pub elements: Vec<Element>,
    /// The connections.
    pub edges: Vec<Edge>,
    /// By name: the element.
    numbers: HashMap<String, usize>,
    /// By element: indices of the edges that leave it.
    pub(crate) leaving: Vec<Vec<usize>>,
    /// By element: indices of the edges that enter it.
    pub(crate) entering: Vec<Vec<usize>>,
    /// Names of compounds whose elements find no element outside of them by name.
    pub(crate) sealed: Vec<String>,
}

impl Graph {
    /// The graph whose elements have these handlers and reasons to drop beside those of their classes.
    pub(crate) fn with_declarations(mut self, all: Vec<ElementDeclarations>) -> Graph {
        self.elements.iter_mut().zip(all).for_each(|(it, own)| it.declarations = own);
        self
    }

    /// The element of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// `name :: Class`, for messages: with the name of the class that the configuration uses.
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

    /// The innermost sealed compound around an element.
    pub(crate) fn seal_of(&self, element: usize) -> Option<&str> {
        let mut scope = self.elements[element].name.as_str();
        loop {
            scope = scope.rsplit_once('/')?.0;
            if self.is_sealed(scope) {
                return Some(scope);
            }
        }
    }

    /// Whether packets rest nowhere on their way to `element`, so that they come on the worker that
    /// made them.
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

    /// Whether the elements of a compound find none outside of it by name.
    pub(crate) fn is_sealed(&self, compound: &str) -> bool {
        self.sealed.iter().any(|sealed| sealed == compound)
    }

    /// Computes the edges that leave and enter each element.
    pub(crate) fn link(&mut self) {
        let numbers = self.elements.iter().enumerate();
        self.numbers = numbers.map(|(number, it)| (it.name.clone(), number)).collect();
        self.leaving = vec![Vec::new(); self.elements.len()];
        self.entering = vec![Vec::new(); self.elements.len()];
        for (i, edge) in self.edges.iter().enumerate() {
            self.leaving[edge.from.node].push(i);
            self.entering[edge.to.node].push(i);
        }
    }
}

/// The full name of the element or compound that `name` means where `element` stands: in its own
/// compound first, then in those around it, up to a sealed one.
pub(crate) fn in_scope(graph: &Graph, element: &str, name: &str) -> Option<String> {
    let mut scope = element;
    loop {
        let outer = scope.rsplit_once('/').map(|(outer, _)| outer);
        let full = outer.map_or(name.to_owned(), |outer| format!("{outer}/{name}"));
        let inside = format!("{full}/");
        if graph.elements.iter().any(|e| e.name == full || e.name.starts_with(&inside)) {
            return Some(full);
        }
        scope = outer.filter(|outer| !graph.is_sealed(outer))?;
    }
}

impl Configuration for Graph {
    fn find(&self, scope: &str, name: &str) -> Option<PeerElement<'_>> {
        let full = in_scope(self, scope, name)?;
        let it = &self.elements[Graph::find(self, &full)?];
        Some(PeerElement {
            name: &it.name,
            class: it.class.spec.class,
            config: &it.config,
            arguments: args::split(&it.config).into_iter().map(|arg| arg.text).collect(),
            inputs: it.inputs.len(),
            outputs: it.outputs.len(),
        })
    }
}
