//! Step: elements to which packets come one at a time, so that the effect of a handler call of one
//! packet holds for the next packet everywhere.
//!
//! An element that calls handlers on its packets' way may change any other element. Packets of a
//! burst that were past an element before the call would not see the change. So from the tasks
//! whose packets come to such an element, up to that element, bursts are of one packet.

use super::{Flow, Graph};
use castanet_element::args::Names;
use castanet_element::class::Role;

/// By element: whether packets come to it, or its tasks send them, one at a time.
pub(crate) fn single(graph: &Graph) -> Vec<bool> {
    let mut single = vec![false; graph.elements.len()];
    let callers = (0..single.len()).filter(|&element| calls(graph, element));
    callers.for_each(|caller| add(graph, caller, &mut single));
    single
}

/// Adds the elements that follow from one that calls handlers.
pub(super) fn add(graph: &Graph, caller: usize, single: &mut [bool]) {
    if graph.in_edges(caller).next().is_some() {
        lead_to(graph, caller, single);
    }
    for (element, single) in single.iter_mut().enumerate() {
        // Packets of a device are divided behind it.
        let class = graph.elements[element].class;
        *single &= !(class.role == Role::Source && class.factory.device.is_some());
    }
}

/// Whether an element calls handlers.
pub(super) fn calls(graph: &Graph, element: usize) -> bool {
    let it = &graph.elements[element];
    it.class.factory.calls.is_some_and(|find| find(&it.config, &Names::default()).is_some())
}

/// Marks the elements on the paths from tasks to `caller`.
fn lead_to(graph: &Graph, caller: usize, single: &mut [bool]) {
    let mut work = vec![caller];
    // Tasks that pull through it lie behind it.
    let mut behind = vec![caller];
    while let Some(element) = behind.pop() {
        let pulled = graph.out_edges(element).filter(|edge| edge.flow == Flow::Pull);
        for edge in pulled {
            if !work.contains(&edge.to.node) {
                work.push(edge.to.node);
                behind.push(edge.to.node);
            }
        }
    }
    while let Some(element) = work.pop() {
        if std::mem::replace(&mut single[element], true) {
            continue;
        }
        for edge in graph.in_edges(element) {
            let rests = graph.elements[edge.from.node].class.role == Role::Store;
            match rests && edge.from.port == 0 {
                false => work.push(edge.from.node),
                // Its task takes packets out; those that push into it are others.
                true if edge.flow != Flow::Pull => single[edge.from.node] = true,
                true => {}
            }
        }
    }
}
