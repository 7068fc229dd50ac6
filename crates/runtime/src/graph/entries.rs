//! The edges by which most packets come to an element.
//!
//! Classes say of which elements few of a router's packets come: `ICMPError` sends errors about some packets back into the
//! routing table. A chain may go on past an input to which such packets come, too: they visit its elements one by one.

use super::Graph;
use castanet_element::class::Role;

/// By element: the index of the edge by which most packets come to it; `None` if that is none or several.
pub(super) fn main_entries(graph: &Graph) -> Vec<Option<usize>> {
    let is_common = common_elements(graph);
    let is_main = |&edge: &usize| is_common[graph.edges[edge].from.node];
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

/// By element: whether many packets may leave it: they come to it by others than elements which few leave.
fn common_elements(graph: &Graph) -> Vec<bool> {
    let mut is_common = vec![false; graph.elements.len()];
    let makes = |&element: &usize| {
        let role = graph.elements[element].class.role;
        matches!(role, Role::Source | Role::Duplex) || graph.entering[element].is_empty()
    };
    let mut reached: Vec<usize> = (0..graph.elements.len()).filter(makes).collect();
    while let Some(element) = reached.pop() {
        let emits_few = graph.elements[element].class.emits_few;
        if !emits_few && !std::mem::replace(&mut is_common[element], true) {
            reached.extend(graph.out_edges(element).map(|edge| edge.to.node));
        }
    }
    is_common
}
