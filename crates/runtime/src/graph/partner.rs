//! The nearest element of a class, up or down the paths of packets, with which an element works.

use super::Graph;
use castanet_element::class::Partner;
use std::collections::VecDeque;

/// The partner of an element whose class has one ([`Partner`]), if it is there. An element in a sealed compound
/// has none outside of it, and one outside none in it.
pub(crate) fn of(graph: &Graph, element: usize) -> Option<usize> {
    let partner = graph.elements[element].class.partner?;
    let next = |at: usize| -> Vec<usize> {
        // Of the element itself, the first port counts.
        match partner {
            Partner::Upstream(_) => {
                let edges = graph.in_edges(at).filter(|it| at != element || it.to.port == 0);
                edges.map(|it| it.from.node).collect()
            }
            Partner::Downstream(_) => {
                let edges = graph.out_edges(at).filter(|it| at != element || it.from.port == 0);
                edges.map(|it| it.to.node).collect()
            }
        }
    };
    let (Partner::Upstream(class) | Partner::Downstream(class)) = partner;
    let mut seen = vec![false; graph.elements.len()];
    let seal = graph.seal_of(element);
    let mut work = VecDeque::from(next(element));
    while let Some(at) = work.pop_front() {
        if graph.seal_of(at) != seal {
            continue;
        }
        if graph.elements[at].class.spec.class == class {
            return Some(at);
        }
        if !std::mem::replace(&mut seen[at], true) {
            work.extend(next(at));
        }
    }
    None
}
