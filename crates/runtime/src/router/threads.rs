//! Handlers about the threads of an element, as FastClick has them.

use super::{ErrorStyle, Router};
use crate::graph::Graph;
use crate::graph::assign::Assignment;
use castanet_element::class::Role;
use castanet_element::flow::Flow;
use castanet_kit::text::ranges;
use std::collections::BTreeSet;

impl Router {
    /// Reads a handler about threads; `None` if it is none.
    pub(super) fn read_threads(&self, element: usize, name: &str) -> Option<String> {
        let (graph, plan) = (&self.config.graph, &self.config.assigned);
        Some(match name {
            "passing_threads" => ranges(&passing(graph, plan)[element]),
            "spawning_threads" => ranges(&spawning(plan, element)),
            "home_thread" => self.home_thread(element).to_string(),
            "mt_safe" => "true".to_owned(),
            "is_fullpush" => is_pushed(graph, element).to_string(),
            _ => return None,
        })
    }

    /// The worker of an element. In Click, an element without a task has worker 0 unless the user
    /// says otherwise, also where its packets come from others.
    fn home_thread(&self, element: usize) -> usize {
        let plan = &self.config.assigned;
        match self.config.error_style {
            ErrorStyle::Click if !plan.has_task(element) => plan[element].wished.unwrap_or(0),
            _ => plan[element].home,
        }
    }
}

/// Whether packets come to an element by push from all sources.
fn is_pushed(graph: &Graph, element: usize) -> bool {
    let (mut seen, mut above) = (BTreeSet::from([element]), vec![element]);
    while let Some(element) = above.pop() {
        if graph.elements[element].inputs.contains(&Flow::Pull) {
            return false;
        }
        for edge in graph.in_edges(element) {
            if graph.elements[edge.from.node].class.role == Role::Store {
                return false;
            }
            if seen.insert(edge.from.node) {
                above.push(edge.from.node);
            }
        }
    }
    true
}

/// The workers that run an element's own tasks.
fn spawning(plan: &Assignment, element: usize) -> BTreeSet<usize> {
    let runs = |worker: &usize| plan.tasks[*worker].iter().any(|kind| kind.element() == element);
    (0..plan.tasks.len()).filter(runs).collect()
}

/// By element: the workers that can bring packets there, with those of its own tasks.
fn passing(graph: &Graph, plan: &Assignment) -> Vec<BTreeSet<usize>> {
    let mut passing = vec![BTreeSet::new(); graph.elements.len()];
    let mut exact = BTreeSet::new();
    for (worker, kinds) in plan.tasks.iter().enumerate() {
        for kind in kinds {
            spread(graph, kind.element(), worker, &mut passing, &mut exact);
        }
    }
    // An element without a task, to which no packets come, may emit some by its timer.
    for element in 0..graph.elements.len() {
        if graph.elements[element].inputs.is_empty() && passing[element].is_empty() {
            spread(graph, element, plan[element].home, &mut passing, &mut exact);
        }
    }
    // Those before others first: they come later in the graph only in circles.
    let mut done = BTreeSet::new();
    while let Some(&switch) = exact.difference(&done).next() {
        done.insert(switch);
        let outputs = graph.elements[switch].outputs.len().max(1);
        for (rank, worker) in passing[switch].clone().into_iter().enumerate() {
            let ends = graph.out_edges(switch).filter(|e| e.from.port == rank % outputs);
            for end in ends.map(|edge| edge.to.node).collect::<Vec<_>>() {
                spread(graph, end, worker, &mut passing, &mut exact);
            }
        }
    }
    passing
}

/// Adds a worker to an element, and to all those to which it pushes packets on, or from which it pulls
/// them. The elements behind an `ExactCPUSwitch` are left to the caller.
fn spread(
    graph: &Graph,
    from: usize,
    worker: usize,
    passing: &mut [BTreeSet<usize>],
    exact: &mut BTreeSet<usize>,
) {
    let mut work = vec![from];
    let is_new = passing[from].insert(worker);
    if !is_new && graph.elements[from].class.role != Role::Store {
        return;
    }
    while let Some(node) = work.pop() {
        let element = &graph.elements[node];
        let rests = element.class.role == Role::Store && node != from;
        let outputs = element.outputs.len().max(1);
        let pushes = |port: usize| match element.source.class.as_str() {
            "CPUSwitch" => port == worker % outputs,
            "ExactCPUSwitch" => false,
            _ => !(rests && port == 0),
        };
        if element.source.class == "ExactCPUSwitch" {
            exact.insert(node);
        }
        let down = graph.out_edges(node).filter(|e| e.flow != Flow::Pull && pushes(e.from.port));
        let up = graph.in_edges(node).filter(|e| e.flow == Flow::Pull && !rests);
        let ends = down.map(|e| e.to.node).chain(up.map(|e| e.from.node));
        for end in ends.collect::<Vec<_>>() {
            if passing[end].insert(worker) {
                work.push(end);
            }
        }
    }
}
