//! Step: the kind of packets on each edge.
//!
//! An element that takes `on::Ipv4` lets only such packets through, so the edges behind it carry
//! nothing else. The next element checks all the same: a view is made by its check alone, which for
//! IPv4 is one test of a flag.

use super::Graph;
use super::dataflow::{PacketFact, PacketFacts};

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

impl PacketFact for Carries {
    fn or(self, other: Carries) -> Carries {
        Carries::or(self, other)
    }
}

/// The kind of packets on each edge, as they are followed from their sources.
pub fn follow(graph: &Graph) -> Vec<Carries> {
    let facts = PacketFacts::follow(graph, |node, port, inputs: &[Option<Carries>]| {
        let arrives = inputs.iter().flatten().fold(Carries::Nothing, |all, one| all.or(*one));
        Some(leaves(graph, node, port, arrives))
    });
    facts.edges.into_iter().map(|edge| edge.unwrap_or(Carries::Nothing)).collect()
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
    let is_origin = graph.elements[node].inputs.is_empty();
    if is_origin || class.is_unknown() { Carries::Any } else { arrives }
}
