//! Makes the setups of elements that are built.

use crate::graph::order::PacketOrder;
use crate::graph::{Graph, assign, partner};
use castanet_element::args::ScopedNames;
use castanet_element::setup::{Peers, Setup};
use castanet_element::shared::SharedState;
use castanet_element::time::Time;
use std::cell::RefCell;

/// A configuration whose elements are built.
pub(super) struct SetupBuilder<'a> {
    pub(super) graph: &'a Graph,
    pub(super) assigned: &'a assign::Assignment,
    pub(super) names: &'a ScopedNames,
    pub(super) shared: &'a SharedState,
    /// Time of the build.
    pub(super) started: Time,
    /// Warnings of elements about their arguments.
    pub(super) warnings: RefCell<Vec<String>>,
}

impl SetupBuilder<'_> {
    /// Calls `f` with the setup of element `it`.
    pub(super) fn at<R>(&self, it: usize, f: impl FnOnce(&Setup) -> R) -> R {
        let (element, assigned) = (&self.graph.elements[it], self.assigned);
        let name = |&store: &usize| self.graph.elements[store].name.as_str();
        let stores: Vec<&str> = assigned[it].watched.iter().map(name).collect();
        f(&Setup {
            name: &element.name,
            inputs: element.inputs.len(),
            outputs: element.outputs.len(),
            workers: &assigned[it].workers,
            single_worker: assigned.alone(it),
            queue_shares: &assigned[it].queue_shares,
            device_queues: assigned[it].device_queues,
            stores: &stores,
            partner: partner::of(self.graph, it).as_ref().map(name),
            may_leave_checksums: assigned[it].may_leave_checksums,
            alignment: assigned[it].alignment,
            as_click: assigned.order != PacketOrder::Bursts,
            names: self.names.of(&element.name),
            warn: &|text| self.warnings.borrow_mut().push(text),
            started: self.started,
            peers: Some(Peers { configuration: self.graph, state: self.shared }),
        })
    }
}
