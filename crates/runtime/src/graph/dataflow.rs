//! Follows facts about packets along the edges of a graph.

use super::Graph;

/// A fact about packets. Those of two edges into one input have what both have in common, so that a fact
/// only weakens.
pub trait PacketFact: Copy + PartialEq {
    /// The fact about packets of two kinds together.
    fn or(self, other: Self) -> Self;
}

/// A fact about the packets on each edge and at each input; `None` where no packet comes.
pub struct PacketFacts<F> {
    /// By edge.
    pub edges: Vec<Option<F>>,
    /// By element, and by input.
    pub inputs: Vec<Vec<Option<F>>>,
}

impl<F: PacketFact> PacketFacts<F> {
    /// Follows packets from their sources until nothing changes. `leaves` says what is true of those
    /// that leave an output of an element, given what is true at its inputs.
    pub fn follow(
        graph: &Graph,
        leaves: impl Fn(usize, usize, &[Option<F>]) -> Option<F>,
    ) -> PacketFacts<F> {
        let inputs = graph.elements.iter().map(|it| vec![None; it.inputs.len()]);
        let mut facts =
            PacketFacts { edges: vec![None; graph.edges.len()], inputs: inputs.collect() };
        // Sources first; an element at which a fact weakens is looked at again.
        let mut work: Vec<usize> = (0..graph.elements.len()).collect();
        work.retain(|&n| graph.elements[n].inputs.is_empty());
        while let Some(node) = work.pop() {
            for &i in &graph.leaving[node] {
                let fact = leaves(node, graph.edges[i].from.port, &facts.inputs[node]);
                if facts.edges[i] == fact {
                    continue;
                }
                facts.edges[i] = fact;
                let to = graph.edges[i].to;
                if let Some(known) = facts.inputs[to.node].get_mut(to.port) {
                    *known = both(*known, fact);
                    work.push(to.node);
                }
            }
        }
        facts
    }
}

/// The fact about packets of two edges into one input.
pub fn both<F: PacketFact>(one: Option<F>, other: Option<F>) -> Option<F> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.or(other)),
        (one, other) => one.or(other),
    }
}
