//! Step: elements to which packets come one at a time, so that the effect of a handler call of one
//! packet holds for the next packet everywhere.
//!
//! An element that calls handlers on its packets' way may change any other element. Packets of a
//! burst that were past an element before the call would not see the change. So from the tasks
//! whose packets come to such an element, up to that element, bursts are of one packet.

use super::{Flow, Graph};
use castanet_element::args::Names;
use castanet_element::class::Role;

/// How many packets of a task are on their way at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketOrder {
    /// Bursts, except where elements call handlers.
    Bursts,
    /// The same, but a task handles one packet in a turn, as Click's do, unless an argument of its element says
    /// otherwise, or a device is connected with it.
    Turns,
    /// One packet, which goes all the way before the next one starts.
    Packets,
}

/// By element: whether its task handles one packet in a turn with this order.
pub(crate) fn one_a_turn(graph: &Graph, order: PacketOrder) -> Vec<bool> {
    // With `Packets`, tasks send one at a time where packets come one at a time.
    let mut one_a_turn = vec![false; graph.elements.len()];
    if order == PacketOrder::Turns {
        let mut found = vec![false; one_a_turn.len()];
        for first in 0..one_a_turn.len() {
            let connected = connected(graph, first, &mut found);
            let has_device = connected.iter().any(|&element| is_device(graph, element));
            connected.into_iter().for_each(|element| one_a_turn[element] = !has_device);
        }
    }
    one_a_turn
}

/// The elements that are connected with one, in whatever direction, and that were not found before.
fn connected(graph: &Graph, first: usize, found: &mut [bool]) -> Vec<usize> {
    let mut all = Vec::new();
    let mut work = vec![first];
    while let Some(element) = work.pop() {
        if std::mem::replace(&mut found[element], true) {
            continue;
        }
        all.push(element);
        work.extend(graph.in_edges(element).map(|edge| edge.from.node));
        work.extend(graph.out_edges(element).map(|edge| edge.to.node));
    }
    all
}

/// Whether an element is an end of a device.
pub(crate) fn is_device(graph: &Graph, element: usize) -> bool {
    graph.elements[element].class.factory.device.is_some()
}

/// Whether packets come to an element in the bursts of a device, which are divided behind it.
fn divides_behind(graph: &Graph, element: usize) -> bool {
    graph.elements[element].class.role == Role::Source && is_device(graph, element)
}

/// By element: whether packets come to it one at a time with this order, beside the elements before callers.
pub(crate) fn all_single(graph: &Graph, order: PacketOrder) -> Vec<bool> {
    let single = |element| order == PacketOrder::Packets && !divides_behind(graph, element);
    (0..graph.elements.len()).map(single).collect()
}

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
        *single &= !divides_behind(graph, element);
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
