//! Step: elements behind which checksums may be left to the sending device.
//!
//! A packet whose checksums are still open must not come to an element that looks at them, changes
//! the bytes under them, or keeps the packet for a later configuration. So an element may leave
//! checksums to a port only where every path behind it leads to outputs that complete them, past
//! elements that do not look.

use super::Graph;
use castanet_element::class::Checksums;

/// By element: whether packets may leave it with open checksums.
pub fn may_leave(graph: &Graph) -> Vec<bool> {
    let what = |n: usize| graph.elements[n].class.checksums;
    let behind = |n: usize, takes: &[bool]| graph.out_edges(n).all(|edge| takes[edge.to.node]);
    // Elements that take such packets: fewer in each round, until no more change.
    let mut takes: Vec<bool> =
        (0..graph.elements.len()).map(|n| what(n) != Checksums::Right).collect();
    loop {
        let refuses = |&n: &usize| takes[n] && what(n) == Checksums::Pass && !behind(n, &takes);
        let refusing: Vec<usize> = (0..takes.len()).filter(refuses).collect();
        if refusing.is_empty() {
            break;
        }
        refusing.into_iter().for_each(|n| takes[n] = false);
    }
    let leads = |n: usize| graph.out_edges(n).next().is_some() && behind(n, &takes);
    (0..takes.len()).map(leads).collect()
}
