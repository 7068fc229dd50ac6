//! Which tasks may move between workers, and which elements move with them.
//!
//! A task that a device or a user keeps where it is does not move. An element
//! to which packets come from the tasks of one element alone moves with them,
//! and its state with it. All others are, like those that several workers
//! reach anyway, on every worker that such a task may come to.

use super::{Plan, wished};
use crate::class::Role;
use crate::element::Facts;
use crate::graph::devices::Device;
use crate::graph::{Flow, Graph};

/// Whose packets come to an element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    Nobody,
    /// Those of the tasks of one element.
    One(usize),
    /// Those of several, or what is made there at a time.
    Many,
}

/// Finds the tasks that may move, and makes room for them on all workers.
pub(super) fn find(graph: &Graph, facts: &Facts, devices: &[Option<Device>], plan: &mut Plan) {
    let count = graph.elements.len();
    let mut tasks = vec![false; count];
    plan.tasks.iter().flatten().for_each(|job| tasks[job.element()] = true);
    let claims = claims(graph, facts, &tasks);
    for element in (0..count).filter(|&it| tasks[it]) {
        let class = graph.elements[element].class;
        let one_state = matches!(class.role, Role::Store | Role::Source)
            || claims[element] == Claim::One(element);
        let why = match wished(graph, facts, element) {
            Some(_) => Some("StaticThreadSched says so"),
            None if devices[element].is_some() || class.each => Some("it has queues of a device"),
            None if !one_state => Some("packets come to it from others' tasks too"),
            None => None,
        };
        plan.stays[element] = why;
        plan.movable[element] = why.is_none();
    }
    for element in 0..count {
        let Claim::One(with) = claims[element] else { continue };
        let it = &graph.elements[element];
        let moves = it.class.role != Role::Store && !it.class.each && devices[element].is_none();
        plan.with[element] = (moves && plan.movable[with]).then_some(with);
    }
    for (home, jobs) in plan.tasks.clone().into_iter().enumerate() {
        for job in jobs {
            if !plan.movable[job.element()] {
                continue;
            }
            let others = (0..plan.workers).filter(|&worker| worker != home);
            others.for_each(|worker| plan.add_away(graph, job, worker));
        }
    }
}

/// By element: whose packets come to it.
fn claims(graph: &Graph, facts: &Facts, tasks: &[bool]) -> Vec<Claim> {
    let mut claims = vec![Claim::Nobody; tasks.len()];
    for element in (0..tasks.len()).filter(|&it| tasks[it]) {
        for (claim, touched) in claims.iter_mut().zip(touched(graph, element)) {
            *claim = match *claim {
                _ if !touched => continue,
                Claim::Nobody => Claim::One(element),
                Claim::One(other) if other == element => continue,
                _ => Claim::Many,
            };
        }
    }
    // What has no task but a place of its own may emit there, at a time.
    for element in 0..tasks.len() {
        let stays = claims[element] == Claim::Nobody || wished(graph, facts, element).is_some();
        if !tasks[element] && stays {
            let touched = touched(graph, element).into_iter();
            claims
                .iter_mut()
                .zip(touched)
                .filter(|(_, it)| *it)
                .for_each(|(c, _)| *c = Claim::Many);
        }
    }
    claims
}

/// By element: whether `from`, or packets that its tasks push or pull, come
/// there. What rests in a store is for others to take; what finds no room in it
/// goes on.
fn touched(graph: &Graph, from: usize) -> Vec<bool> {
    let rests = |node: usize| graph.elements[node].class.role == Role::Store && node != from;
    let mut seen = vec![false; graph.elements.len()];
    // Upwards on pull edges first, then down from all that was found.
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
