//! Step: the kind of packets on each edge.
//!
//! An element that takes `on::Ipv4` lets only such packets through, so the edges behind it carry
//! nothing else. The next element checks all the same: a view is made by its check alone, which for
//! IPv4 is one test of a flag. An element that takes `on::Ipv4` where no element upstream marks a
//! header would drop all packets, and is warned about.

use super::Graph;
use castanet_lang::{Diagnostic, Diagnostics};

/// The kind of packets on an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carries {
    /// No packet comes along here.
    Nothing,
    /// Packets of that view: `ip`, `arp`…
    Only(&'static str),
    /// Anything.
    Any,
}

impl Carries {
    /// The kind of packets on two edges into one input together.
    fn or(self, other: Carries) -> Carries {
        match (self, other) {
            (Carries::Nothing, c) | (c, Carries::Nothing) => c,
            (Carries::Only(a), Carries::Only(b)) if a == b => self,
            (Carries::Only(a), Carries::Only(b)) => {
                common(a, b).map_or(Carries::Any, Carries::Only)
            }
            _ => Carries::Any,
        }
    }

    /// Whether all such packets have a view.
    pub fn are(self, view: &str) -> bool {
        match self {
            Carries::Only(what) => what == view || general(what) == Some(view),
            _ => false,
        }
    }

    /// Its name, for `explain`.
    pub fn word(self) -> &'static str {
        match self {
            Carries::Nothing => "nothing",
            Carries::Only(view) => view,
            Carries::Any => "any",
        }
    }
}

/// The more general view that packets of a view also have.
fn general(view: &str) -> Option<&'static str> {
    match view {
        "udp" | "tcp" | "icmp" => Some("ip"),
        "arp" => Some("ether"),
        _ => None,
    }
}

fn common(a: &'static str, b: &'static str) -> Option<&'static str> {
    let (a, b) = (general(a).unwrap_or(a), general(b).unwrap_or(b));
    (a == b).then_some(a)
}

/// The kind of packets on each edge and at each element.
pub struct EdgePlan {
    /// By edge.
    pub edges: Vec<Carries>,
    /// By element: the kind of packets that arrive, all inputs together.
    pub arrives: Vec<Carries>,
}

/// Follows packets from their sources until nothing changes.
pub fn follow(graph: &Graph, warnings: &mut Diagnostics) -> EdgePlan {
    let mut plan = EdgePlan {
        edges: vec![Carries::Nothing; graph.edges.len()],
        arrives: vec![Carries::Nothing; graph.elements.len()],
    };
    // Sources first; an element to which more kinds come is looked at again. The kind of an edge
    // only grows: nothing, one view, any.
    let mut work: Vec<usize> = (0..graph.elements.len()).collect();
    work.retain(|&n| graph.elements[n].inputs.is_empty());
    while let Some(node) = work.pop() {
        for &i in &graph.leaving[node] {
            let carried = leaves(graph, node, graph.edges[i].from.port, plan.arrives[node]);
            if plan.edges[i] == carried {
                continue;
            }
            plan.edges[i] = carried;
            let to = graph.edges[i].to.node;
            let arrives = plan.arrives[to].or(carried);
            if arrives != plan.arrives[to] || carried != Carries::Nothing {
                plan.arrives[to] = arrives;
                work.push(to);
            }
        }
    }
    warn(graph, &plan, warnings);
    plan
}

/// The kind of packets that leave an output, given the kind that arrives.
fn leaves(graph: &Graph, node: usize, port: usize, arrives: Carries) -> Carries {
    let class = graph.elements[node].class;
    if let Some(gives) = class.spec.gives {
        // A view that an element marks holds for its first output; errors leave by the others as
        // they came.
        return if port == 0 { Carries::Only(gives) } else { arrives.or(Carries::Any) };
    }
    if class.on != "any" && !arrives.are(class.on) {
        return Carries::Only(class.on);
    }
    if graph.elements[node].inputs.is_empty() { Carries::Any } else { arrives }
}

/// Warns about elements that will refuse all packets.
fn warn(graph: &Graph, plan: &EdgePlan, warnings: &mut Diagnostics) {
    for (i, it) in graph.elements.iter().enumerate() {
        let needs_mark = matches!(it.class.on, "ip" | "ip6" | "udp" | "tcp" | "icmp");
        let Carries::Only(what) = plan.arrives[i] else { continue };
        if needs_mark && matches!(what, "ether" | "arp") {
            let message = format!(
                "'{}' takes {} packets, but only {what} packets arrive",
                graph.label(i),
                it.class.on
            );
            let help = match it.class.on {
                "ip6" => "put Strip(14) and CheckIP6Header (or MarkIP6Header) before it",
                _ => "put Strip(14) and CheckIPHeader (or MarkIPHeader) before it",
            };
            warnings.push(Diagnostic::warning(it.span, message).with_help(help));
        }
    }
}
