//! Chains of a graph that could be compiled, as `castanet build` does.
//!
//! A chain is a path of elements that can be stages of a fused chain
//! ([`Description::stage`](castanet_element::class::Description)) and of which each worker has a state
//! of its own. Of the paths in the graph the longest is taken first, as [`fuse::find`](super::fuse::find)
//! does with chains that are compiled. A path goes on behind an element with several outputs only
//! where one of them has a longer path behind it than all others: most packets may then be taken to
//! go there.

use super::{Edge, Graph};
use castanet_element::class::{Class, Role, StageKind, StateSharing};
use castanet_element::flow::Flow;
use castanet_element::node::fused::MAX_STAGES;

/// A chain that could be compiled.
pub struct CompilableChain {
    /// Its elements in order; two at least.
    pub members: Vec<usize>,
    /// Whether the last element sends packets to several outputs.
    pub open: bool,
}

impl CompilableChain {
    /// The chain as [`fuse!`](castanet_element::fuse) takes it: the Rust types of its classes, each with
    /// the word before it.
    pub fn stages(&self, graph: &Graph) -> String {
        let mut text = String::new();
        for (n, &member) in self.members.iter().enumerate() {
            let Some(stage) = graph.elements[member].class.stage else { continue };
            let last = n + 1 == self.members.len();
            text += match (stage.kind, n) {
                _ if last && self.open => "; ",
                (StageKind::Packet, 0) => "packet ",
                (StageKind::Batch, 0) => "batch ",
                (StageKind::Packet, _) => ", packet ",
                (StageKind::Batch, _) => ", batch ",
            };
            text += (stage.path)();
        }
        text
    }
}

/// Why no element of a class can be in a compiled chain; `None` if it can.
pub fn reason_against(class: &Class) -> Option<&'static str> {
    match (class.role, class.stage, class.sharing) {
        (Role::Through, None, _) => Some("takes packets in batches"),
        (Role::Through, Some(_), StateSharing::PerWorker) => None,
        (Role::Through, Some(_), _) => Some("shares its state between workers"),
        (Role::Source | Role::Duplex, _, _) => Some("is asked for packets"),
        (Role::Store, _, _) => Some("keeps packets"),
        (Role::Info | Role::Control, _, _) => Some("has no packets"),
    }
}

/// Finds the chains: the longest paths first, until none is left.
pub fn find(graph: &Graph) -> Vec<CompilableChain> {
    let mut search = Search { graph, free: vec![true; graph.elements.len()] };
    let mut chains = Vec::new();
    loop {
        let paths = (0..graph.elements.len()).map(|node| search.longest(node));
        // Of several the first.
        let Some(path) = paths.rev().max_by_key(Vec::len).filter(|path| path.len() > 1) else {
            return chains;
        };
        path.iter().for_each(|&member| search.free[member] = false);
        chains.extend(divided(graph, &path));
    }
}

/// A path as chains of at most [`MAX_STAGES`] members. One ends at the last element with several outputs,
/// where there is one.
fn divided(graph: &Graph, path: &[usize]) -> Vec<CompilableChain> {
    let (mut rest, mut chains) = (path, Vec::new());
    while rest.len() > 1 {
        let is_open = |&member: &usize| graph.elements[member].class.open_outputs;
        let most = rest.len().min(MAX_STAGES);
        let count = match rest.len() > MAX_STAGES {
            true => rest[..most]
                .iter()
                .rposition(is_open)
                .filter(|&at| at > 0)
                .map_or(most, |at| at + 1),
            false => most,
        };
        let (members, after) = rest.split_at(count);
        let open = members.last().is_some_and(is_open);
        chains.push(CompilableChain { members: members.to_vec(), open });
        rest = after;
    }
    chains
}

/// The data of a search for paths.
struct Search<'a> {
    graph: &'a Graph,
    /// By element: whether it is in no chain yet.
    free: Vec<bool>,
}

impl Search<'_> {
    /// The longest path that begins with an element; empty if the element can be in none.
    fn longest(&self, node: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut next = self.is_stage(node).then_some(node);
        while let Some(node) = next.filter(|&node| self.free[node] && !path.contains(&node)) {
            path.push(node);
            next = self.onward(node);
        }
        path
    }

    /// The element behind `node` on the longest path, whether it is in a chain already or not.
    fn onward(&self, node: usize) -> Option<usize> {
        let depth = |edge: &Edge| (self.depth(edge.to.node, MAX_STAGES), edge.to.node);
        let mut depths: Vec<(usize, usize)> = self.leaving(node).map(depth).collect();
        depths.sort_unstable_by(|a, b| b.cmp(a));
        match depths[..] {
            [(0, _), ..] | [] => None,
            [(one, _), (other, _), ..] if one == other => None,
            [(_, node), ..] => Some(node),
        }
    }

    /// The edges by which packets may go on in a chain.
    fn leaving(&self, node: usize) -> impl Iterator<Item = &Edge> {
        let open = self.graph.elements[node].class.open_outputs;
        let edges = self.graph.out_edges(node);
        edges.filter(move |edge| edge.flow != Flow::Pull && (open || edge.from.port == 0))
    }

    /// The length of the longest path behind an edge to `node`, as far as `most`: a circle has no end.
    fn depth(&self, node: usize, most: usize) -> usize {
        if most == 0 || !self.is_stage(node) || self.graph.in_edges(node).count() != 1 {
            return 0;
        }
        let behind = self.leaving(node).map(|edge| self.depth(edge.to.node, most - 1));
        1 + behind.max().unwrap_or(0)
    }

    /// Whether an element can be a stage.
    fn is_stage(&self, node: usize) -> bool {
        let pushed = self.graph.in_edges(node).all(|edge| edge.flow != Flow::Pull);
        reason_against(self.graph.elements[node].class).is_none() && pushed
    }
}
