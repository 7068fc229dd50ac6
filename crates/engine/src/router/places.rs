//! What elements that are built may know about their places in the graph.

use crate::args::Names;
use crate::board::{Board, Others};
use crate::element::Setup;
use crate::graph::{Graph, assign};
use crate::time::Time;
use std::cell::RefCell;

/// A graph whose elements are built.
pub(super) struct Places<'a> {
    pub(super) graph: &'a Graph,
    pub(super) assigned: &'a assign::Plan,
    /// By element: whether packets may leave it with checksums left to others.
    pub(super) checksums: &'a [bool],
    pub(super) names: &'a Names,
    pub(super) board: &'a Board,
    /// When it is built.
    pub(super) started: Time,
    /// Warnings of elements about their arguments.
    pub(super) warnings: RefCell<Vec<String>>,
}

impl Places<'_> {
    /// Calls `f` with what element `it` may know.
    pub(super) fn at<R>(&self, it: usize, f: impl FnOnce(&Setup) -> R) -> R {
        let (element, assigned) = (&self.graph.elements[it], self.assigned);
        let name = |&store: &usize| self.graph.elements[store].name.as_str();
        let stores: Vec<&str> = assigned.watched[it].iter().map(name).collect();
        f(&Setup {
            name: &element.name,
            inputs: element.inputs.len(),
            outputs: element.outputs.len(),
            workers: &assigned.vectors[it],
            alone: assigned.alone(it),
            shares: &assigned.shares[it],
            used: assigned.used[it],
            stores: &stores,
            may_leave_sums: self.checksums[it],
            names: self.names,
            warn: &|text| self.warnings.borrow_mut().push(text),
            started: self.started,
            others: Some(Others { graph: self.graph, board: self.board }),
        })
    }
}
