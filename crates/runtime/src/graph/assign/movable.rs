//! Tasks that may move between workers, and the elements that move with them.
//!
//! A task that a device or the user keeps on a worker does not move. An element to which packets
//! come from the tasks of one element alone moves with them, and its state with it. All other
//! elements have a state on each worker to which such a task may come.

use super::{Assignment, said_of};
use crate::graph::Graph;
use castanet_element::class::Role;
use castanet_element::device::Device;
use castanet_element::element::Facts;
use castanet_element::flow::Flow;

/// The origin of packets at an element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    None,
    /// The tasks of one element.
    One(usize),
    /// The tasks of several elements, or timers of elements without tasks.
    Many,
}

/// Finds the tasks that may move, and makes room for them on all workers.
pub(super) fn find(
    graph: &Graph,
    facts: &Facts,
    devices: &[Option<Device>],
    plan: &mut Assignment,
) {
    let count = graph.elements.len();
    let mut tasks = vec![false; count];
    plan.tasks.iter().flatten().for_each(|kind| tasks[kind.element()] = true);
    let origins = origins(graph, facts, &tasks);
    for element in (0..count).filter(|&it| tasks[it]) {
        let class = graph.elements[element].class;
        let one_state = matches!(class.role, Role::Store | Role::Source)
            || origins[element] == Origin::One(element);
        let why = match said_of(graph, &facts.homes, element) {
            Some(_) => Some("StaticThreadSched says so"),
            None if devices[element].is_some() || class.per_worker => {
                Some("it has queues of a device")
            }
            None if !one_state => Some("packets come to it from others' tasks too"),
            None => None,
        };
        plan[element].stays = why;
        plan[element].movable = why.is_none();
    }
    for element in 0..count {
        let Origin::One(with) = origins[element] else { continue };
        let it = &graph.elements[element];
        let moves =
            it.class.role != Role::Store && !it.class.per_worker && devices[element].is_none();
        plan[element].moves_with = (moves && plan[with].movable).then_some(with);
    }
    for (home, kinds) in plan.tasks.clone().into_iter().enumerate() {
        for kind in kinds {
            if !plan[kind.element()].movable {
                continue;
            }
            let others = (0..plan.workers).filter(|&worker| worker != home);
            others.for_each(|worker| plan.add_away(graph, kind, worker));
        }
    }
}

/// By element: the origin of its packets.
fn origins(graph: &Graph, facts: &Facts, tasks: &[bool]) -> Vec<Origin> {
    let mut origins = vec![Origin::None; tasks.len()];
    for element in (0..tasks.len()).filter(|&it| tasks[it]) {
        for (origin, touched) in origins.iter_mut().zip(touched(graph, element)) {
            *origin = match *origin {
                _ if !touched => continue,
                Origin::None => Origin::One(element),
                Origin::One(other) if other == element => continue,
                _ => Origin::Many,
            };
        }
    }
    // An element without a task may emit packets by a timer where it stands.
    for element in 0..tasks.len() {
        let stays =
            origins[element] == Origin::None || said_of(graph, &facts.homes, element).is_some();
        if !tasks[element] && stays {
            let touched = touched(graph, element).into_iter();
            origins
                .iter_mut()
                .zip(touched)
                .filter(|(_, it)| *it)
                .for_each(|(c, _)| *c = Origin::Many);
        }
    }
    origins
}

/// By element: whether packets that the tasks of `from` push or pull come to it. Packets that rest
/// in a store are taken out by other tasks; packets that find no room in it go on.
fn touched(graph: &Graph, from: usize) -> Vec<bool> {
    let rests = |node: usize| graph.elements[node].class.role == Role::Store && node != from;
    let mut seen = vec![false; graph.elements.len()];
    // Upwards on pull edges first, then down from all elements found so.
    let (mut up, mut down) = (vec![from], Vec::new());
    while let Some(node) = up.pop() {
        if std::mem::replace(&mut seen[node], true) {
            continue;
        }
        down.push(node);
        let edges = graph.in_edges(node).filter(|edge| edge.flow == Flow::Pull && !rests(node));
        up.extend(edges.map(|edge| edge.from.node));
    }
    while let Some(node) = down.pop() {
        for edge in graph.out_edges(node).filter(|edge| edge.flow != Flow::Pull) {
            let waits = rests(node) && edge.from.port == 0;
            if !waits && !std::mem::replace(&mut seen[edge.to.node], true) {
                down.push(edge.to.node);
            }
        }
    }
    seen
}
