//! Step: port counts, and which ports push and which pull.

use super::{Element, Flow, Graph};
use castanet_element::class::ports::{apart, code, counts, letter, paired};
use castanet_element::class::{Class, Role};
use castanet_element::fate::{FateKind, MAX_OUTPUTS};
use castanet_lang::{Diagnostic, Diagnostics};

/// Checks counts and connections, and decides push or pull for every port.
///
/// Everything wrong is found at once; with `in_turn` the checks come one after
/// another and stop at the first that fails, as Click's do.
pub fn resolve(graph: &mut Graph, in_turn: bool, errors: &mut Diagnostics) {
    let before = errors.errors();
    for it in &mut graph.elements {
        if !it.class.is_unknown() {
            check_range(it, errors);
        }
        if !in_turn {
            check_used(it, errors);
        }
        let code = code(it.class);
        it.inputs = (0..it.inputs.len()).map(|n| letter(code, 0, n)).collect();
        it.outputs = (0..it.outputs.len()).map(|n| letter(code, 1, n)).collect();
    }
    if in_turn && errors.errors() > before {
        return;
    }
    settle(graph, errors);
    if in_turn && errors.errors() > before {
        return;
    }
    check_connections(graph, errors);
    if in_turn {
        graph.elements.iter().for_each(|it| check_used(it, errors));
    }
}

/// Name of a side, its number of ports, and the fewest and most that it may have.
type Side = (&'static str, usize, (usize, usize));

fn sides(it: &Element) -> [Side; 2] {
    let want = counts(it.class);
    [("input", it.inputs.len(), want.inputs), ("output", it.outputs.len(), want.outputs)]
}

/// An error about one port, with the right number of ports as help.
fn about(it: &Element, message: String, (side, _, (low, high)): Side) -> Diagnostic {
    let takes = format!("{} takes {}", it.source.class, plural(low, high, side));
    Diagnostic::error(it.span, message).with_help(takes)
}

/// Checks that there is no port beyond those of the class.
fn check_range(it: &Element, errors: &mut Diagnostics) {
    for (side, have, (low, high)) in sides(it) {
        if have > high {
            let message = format!("'{} :: {}' has no {side} {high}", it.name, it.source.class);
            errors.push(about(it, message, (side, have, (low, high))));
        }
    }
}

/// Checks that all ports are connected that must be.
fn check_used(it: &Element, errors: &mut Diagnostics) {
    for (side, have, (low, high)) in sides(it) {
        // As many outputs as inputs, where the class says so.
        let equal = it.class.spec.ports.is_some_and(|ports| ports.ends_with("/="));
        let low = if equal { low.max(it.inputs.len().max(it.outputs.len())) } else { low };
        for port in have..low {
            let message = format!("'{} :: {}' {side} {port} unused", it.name, it.source.class);
            errors.push(about(it, message, (side, have, (low, high))));
        }
    }
}

fn plural(low: usize, high: usize, side: &str) -> String {
    let s = |n| if n == 1 { "" } else { "s" };
    match (low, high) {
        (_, 0) => format!("no {side}s"),
        (low, high) if low == high => format!("{low} {side}{}", s(low)),
        (low, MAX_OUTPUTS) => format!("at least {low} {side}{}", s(low)),
        (low, high) => format!("{low} to {high} {side}s"),
    }
}

/// Carries push and pull along edges and through agnostic elements until nothing changes; ports
/// that are still agnostic then push, as in Click.
fn settle(graph: &mut Graph, errors: &mut Diagnostics) {
    let mut work: Vec<usize> = (0..graph.edges.len()).collect();
    let mut mismatched = vec![false; graph.edges.len()];
    while let Some(i) = work.pop() {
        let edge = graph.edges[i];
        let Some(&out) = graph.elements[edge.from.node].outputs.get(edge.from.port) else {
            continue;
        };
        let Some(&input) = graph.elements[edge.to.node].inputs.get(edge.to.port) else { continue };
        let changed = match (out, input) {
            (Flow::Agnostic, Flow::Agnostic) => continue,
            (Flow::Agnostic, flow) => {
                graph.elements[edge.from.node].tie(edge.from.port, true, flow);
                edge.from.node
            }
            (flow, Flow::Agnostic) => {
                graph.elements[edge.to.node].tie(edge.to.port, false, flow);
                edge.to.node
            }
            (a, b) => {
                if a != b && !std::mem::replace(&mut mismatched[i], true) {
                    errors.push(mismatch(graph, i, a, b));
                }
                continue;
            }
        };
        work.extend(graph.leaving[changed].iter().chain(&graph.entering[changed]));
    }
    for it in &mut graph.elements {
        let open = it.inputs.iter_mut().chain(&mut it.outputs);
        open.filter(|f| **f == Flow::Agnostic).for_each(|f| *f = Flow::Push);
    }
    for i in 0..graph.edges.len() {
        let from = graph.edges[i].from;
        let out = graph.elements[from.node].outputs.get(from.port).copied();
        graph.edges[i].flow = out.unwrap_or(Flow::Push);
    }
}

impl Element {
    /// Decides an agnostic port, and with it the agnostic ports of the other side, and of its own
    /// side where packets flow between them.
    fn tie(&mut self, port: usize, output: bool, flow: Flow) {
        let side = if output { &mut self.outputs } else { &mut self.inputs };
        side[port] = flow;
        // Where no packet ever leaves, ports do not depend on each other.
        let passes = self.class.open_outputs || !self.class.fates.is_empty();
        let tied = passes && matches!(self.class.role, Role::Through | Role::Duplex);
        let shown = code(self.class);
        if !tied || apart(self.class) || !shown.contains('a') {
            return;
        }
        let paired = paired(self.class);
        for side in [&mut self.inputs, &mut self.outputs] {
            for (n, other) in side.iter_mut().enumerate() {
                if *other == Flow::Agnostic && (!paired || n == port) {
                    *other = flow;
                }
            }
        }
    }
}

/// The error for an edge whose two ends disagree. Where one of them is an
/// agnostic element, it is the one in the wrong place.
fn mismatch(graph: &Graph, edge: usize, out: Flow, input: Flow) -> Diagnostic {
    let edge = graph.edges[edge];
    let is_agnostic = |node: usize, side, port| {
        let class = graph.elements[node].class;
        class.role == Role::Through && letter(code(class), side, port) == Flow::Agnostic
    };
    let (of, to) = (edge.from, edge.to);
    let (out_word, in_word) = (out.word(), input.word());
    let message = if is_agnostic(of.node, 1, of.port) {
        let label = graph.label(of.node);
        format!(
            "agnostic '{label}' in mixed context: {out_word} input 0, {in_word} output {}",
            of.port
        )
    } else if is_agnostic(to.node, 0, to.port) {
        let label = graph.label(to.node);
        format!(
            "agnostic '{label}' in mixed context: {out_word} input {}, {in_word} output 0",
            to.port
        )
    } else {
        let (from, to_label) = (graph.label(of.node), graph.label(to.node));
        format!(
            "'{from}' {out_word} output {} connected to '{to_label}' {in_word} input {}",
            of.port, to.port
        )
    };
    Diagnostic::error(edge.span, message).with_help(match out {
        Flow::Push => "put a Queue between the pushing and the pulling side",
        _ => "put an Unqueue between the pulling and the pushing side",
    })
}

/// Checks that each push output and each pull input has one connection, and that no port below a
/// connected one is open.
fn check_connections(graph: &Graph, errors: &mut Diagnostics) {
    let uses_of = |it: &Element| (vec![0u32; it.inputs.len()], vec![0u32; it.outputs.len()]);
    let mut uses: Vec<_> = graph.elements.iter().map(uses_of).collect();
    for edge in &graph.edges {
        count(&mut uses[edge.from.node].1, edge.from.port);
        count(&mut uses[edge.to.node].0, edge.to.port);
    }
    for (i, (it, used)) in graph.elements.iter().zip(&uses).enumerate() {
        if it.class.is_unknown() {
            continue;
        }
        let sides = [
            ("input", &it.inputs, &used.0, Flow::Pull),
            ("output", &it.outputs, &used.1, Flow::Push),
        ];
        for (side, flows, used, single) in sides {
            for (port, (&flow, &uses)) in flows.iter().zip(used).enumerate() {
                let label = graph.label(i);
                if uses == 0 && !may_stay_open(it.class, side, port) {
                    errors.error(it.span, format!("'{label}' {side} {port} unused"));
                } else if uses > 1 && flow == single {
                    let word = flow.word();
                    let message = format!("illegal reuse of '{label}' {word} {side} {port}");
                    errors.push(Diagnostic::error(it.span, message).with_help(match side {
                        "output" => "a Tee sends copies to several places",
                        _ => "a scheduler such as RoundRobinSched pulls from several places",
                    }));
                }
            }
        }
    }
}

/// Whether a port may stay open although a higher one is connected.
fn may_stay_open(class: &Class, side: &str, port: usize) -> bool {
    let optional = |fate: &castanet_element::fate::FateSpec| fate.kind == FateKind::Optional;
    side == "output" && class.outputs().nth(port).is_some_and(optional)
}

fn count(uses: &mut [u32], port: usize) {
    if let Some(n) = uses.get_mut(port) {
        *n += 1;
    }
}
