//! Prints each step of the way from a configuration to running workers.

use super::{Flow, Graph, assign, carries, fuse, ports};
use crate::args::Names;
use crate::class::Role;
use crate::element::Facts;
use std::fmt::Write;

/// Elements with their classes, ports and processing.
pub fn elements(graph: &Graph) -> String {
    let mut out = String::new();
    for it in &graph.elements {
        let flows =
            |flows: &[Flow]| flows.iter().map(|f| &f.word()[..4]).collect::<Vec<_>>().join(" ");
        let (inputs, outputs) = (flows(&it.inputs), flows(&it.outputs));
        let dash = |s: String| if s.is_empty() { "-".to_owned() } else { s };
        _ = writeln!(
            out,
            "  {} :: {}  [{}]  in: {}  out: {}",
            it.name,
            it.class.spec.class,
            ports::code(it.class),
            dash(inputs),
            dash(outputs)
        );
    }
    out
}

/// What each edge carries and where headers are looked at.
pub fn edges(graph: &Graph, plan: &carries::Plan) -> String {
    let mut out = String::new();
    for (edge, carried) in graph.edges.iter().zip(&plan.edges) {
        let (from, to) = (&graph.elements[edge.from.node], &graph.elements[edge.to.node]);
        let look = match to.class.on {
            "any" => String::new(),
            on if carried.are(on) => format!("; known to be {on}, no second look"),
            on => format!("; {} looks: what is not {on} is dropped and counted", to.name),
        };
        _ = writeln!(
            out,
            "  {}[{}] -> [{}]{}  {}, carries {}{look}",
            from.name,
            edge.from.port,
            edge.to.port,
            to.name,
            edge.flow.word(),
            carried.word(),
        );
    }
    out
}

/// Tasks by worker, and why.
pub fn workers(graph: &Graph, plan: &assign::Plan) -> String {
    let mut out = String::new();
    for (worker, jobs) in plan.tasks.iter().enumerate() {
        _ = writeln!(out, "  worker {worker}: {} task{}", jobs.len(), s(jobs.len()));
        for job in jobs {
            let element = job.element();
            let what = match job {
                crate::worker::Job::Ask(_) => "asks",
                crate::worker::Job::Drain { .. } => "pulls for",
                crate::worker::Job::Empty(_) => "empties",
            };
            let (label, reason) = (graph.label(element), plan.reasons[element]);
            _ = writeln!(out, "    {what} {label}  ({reason})");
        }
    }
    out
}

/// Devices: how packets will come and go, and why that way.
pub fn devices(graph: &Graph, facts: &Facts) -> String {
    let names = Names::new(&facts.addresses, None);
    let mut out = String::new();
    for (node, it) in graph.elements.iter().enumerate() {
        let Some(text) = it.class.foresee.and_then(|foresee| foresee(&it.config, &names)) else {
            continue;
        };
        _ = writeln!(out, "  {}: {text}", graph.label(node));
    }
    out
}

/// Thread vectors: which workers reach which elements, and what follows.
pub fn vectors(graph: &Graph, plan: &assign::Plan) -> String {
    let mut out = String::new();
    for (i, it) in graph.elements.iter().enumerate() {
        let workers: Vec<String> =
            (0..plan.workers).filter(|&w| plan.vectors[i][w]).map(|w| w.to_string()).collect();
        let note = match (it.class.role, workers.len()) {
            (Role::Info, _) => "declares facts; nothing runs",
            (Role::Control, _) => "runs on the control thread",
            (_, 0) => "no packet reaches it",
            (Role::Store, _) => "one state for all workers, locked per burst",
            (_, 1) => "one worker: nothing is shared",
            _ => "several workers: each has its own state, handlers add them up",
        };
        let set = if workers.is_empty() { "-".into() } else { workers.join(",") };
        _ = writeln!(out, "  {}  {{{set}}}  {note}", it.name);
    }
    let verdict = match plan.full_push(graph) {
        true => "full push: every packet stays on the worker that received it",
        false => "not full push: packets rest in a Queue and may change workers",
    };
    _ = writeln!(out, "  {verdict}");
    out
}

/// Elements in a row that run as one pass over a burst.
pub fn passes(graph: &Graph, plan: &fuse::Plan) -> String {
    let mut out = String::new();
    for row in &plan.rows {
        let names = row.members.iter().map(|member| {
            let name = &graph.elements[member.node].name;
            if member.via > 0 { format!("{name}[{}]", member.via) } else { name.clone() }
        });
        _ = writeln!(out, "  {}", names.collect::<Vec<_>>().join(" -> "));
    }
    if out.is_empty() {
        out += "  none: each element is visited by itself\n";
    }
    out
}

fn s(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}
