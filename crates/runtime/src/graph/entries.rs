//! The edges by which most packets come to an element.
//!
//! Packets that leave an element by another exit than its first are few, where its class says what its exits are:
//! `DecIPTTL` sends packets whose time is over to an `ICMPError`, and this sends errors back into the routing table. So a
//! chain may go on past an input to which such packets come, too: they visit its elements one by one.

use super::Graph;
use castanet_element::class::Role;

/// By element: the index of the edge by which most packets come to it; `None` if that is none or several.
pub(super) fn main_entries(graph: &Graph) -> Vec<Option<usize>> {
    let is_common = common_elements(graph);
    let is_main = |edge: &usize| is_common[graph.edges[*edge].from.node] && !is_rare(graph, *edge);
    let main = |entering: &Vec<usize>| {
        let all = entering.iter().copied();
        only(all.clone()).or_else(|| only(all.filter(is_main)))
    };
    graph.entering.iter().map(main).collect()
}

/// The only one of these edges.
fn only(mut edges: impl Iterator<Item = usize>) -> Option<usize> {
    edges.next().filter(|_| edges.next().is_none())
}

/// By element: whether packets come to it by other ways than by rare exits.
fn common_elements(graph: &Graph) -> Vec<bool> {
    let mut is_common = vec![false; graph.elements.len()];
    let makes = |&element: &usize| {
        let role = graph.elements[element].class.role;
        matches!(role, Role::Source | Role::Duplex) || graph.entering[element].is_empty()
    };
    let mut reached: Vec<usize> = (0..graph.elements.len()).filter(makes).collect();
    while let Some(element) = reached.pop() {
        if std::mem::replace(&mut is_common[element], true) {
            continue;
        }
        let leaving = graph.leaving[element].iter().filter(|&&edge| !is_rare(graph, edge));
        reached.extend(leaving.map(|&edge| graph.edges[edge].to.node));
    }
    is_common
}

/// Whether few packets leave by an edge, by what the class says about its exit.
fn is_rare(graph: &Graph, edge: usize) -> bool {
    let from = graph.edges[edge].from;
    from.port != 0 && !graph.elements[from.node].class.open_outputs
}
