//! Orders the nodes within layers by barycenters of ports, in sweeps down and up, and keeps the
//! order with the fewest crossings.

use super::Component;

/// An end of an edge: index of the node in its layer, position on the node.
type SegmentEnd = (usize, f64);

const SWEEPS: usize = 24;
/// Number of sweeps without improvement after which the search ends.
const MAX_IDLE_SWEEPS: usize = 6;

pub(super) fn order(component: &mut Component) {
    let mut best = crossings(component);
    let mut layers = component.layers.clone();
    let mut idle = 0;
    for sweep in 0..SWEEPS {
        if best == 0 || idle >= MAX_IDLE_SWEEPS {
            break;
        }
        sort_layers(component, sweep % 2 == 0);
        let now = crossings(component);
        if now < best {
            (best, idle) = (now, 0);
            layers.clone_from(&component.layers);
        } else {
            idle += 1;
        }
    }
    component.layers = layers;
    component.number();
}

impl Component {
    fn number(&mut self) {
        for layer in &self.layers {
            for (order, &node) in layer.iter().enumerate() {
                self.nodes[node].order = order;
            }
        }
    }
}

/// Orders each layer by the mean position of its neighbours in the layer above (`down`) or below.
fn sort_layers(component: &mut Component, down: bool) {
    let mut pulls: Vec<Vec<(usize, f64, f64)>> = vec![Vec::new(); component.nodes.len()];
    for segment in &component.segments {
        let (moved, fixed) =
            if down { (segment.lower, segment.upper) } else { (segment.upper, segment.lower) };
        pulls[moved.0].push((fixed.0, fixed.1, moved.1));
    }
    let depth = component.layers.len();
    for step in 1..depth {
        let layer = if down { step } else { depth - 1 - step };
        let mut keyed: Vec<(f64, usize)> = component.layers[layer]
            .iter()
            .map(|&node| {
                let pull = &pulls[node];
                let own = component.nodes[node].order as f64;
                if pull.is_empty() {
                    return (own, node);
                }
                // The port on the moved side breaks ties, which makes edges straighter.
                let sum: f64 = pull
                    .iter()
                    .map(|&(n, at, own)| component.nodes[n].order as f64 + 0.9 * at - 0.05 * own)
                    .sum();
                (sum / pull.len() as f64, node)
            })
            .collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
        component.layers[layer] = keyed.into_iter().map(|(_, node)| node).collect();
        for (order, &node) in component.layers[layer].iter().enumerate() {
            component.nodes[node].order = order;
        }
    }
}

/// Counts the crossings between all neighbouring layers.
fn crossings(component: &Component) -> usize {
    let mut by_layer: Vec<Vec<(SegmentEnd, SegmentEnd)>> = vec![Vec::new(); component.layers.len()];
    for segment in &component.segments {
        let upper = &component.nodes[segment.upper.0];
        let lower = &component.nodes[segment.lower.0];
        by_layer[upper.layer]
            .push(((upper.order, segment.upper.1), (lower.order, segment.lower.1)));
    }
    by_layer.iter_mut().map(|edges| inversions(edges)).sum()
}

/// Counts the pairs of edges that cross, with a binary indexed tree (Barth, Jünger and Mutzel
/// 2004).
fn inversions(edges: &mut [(SegmentEnd, SegmentEnd)]) -> usize {
    let compare = |a: SegmentEnd, b: SegmentEnd| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
    let mut lower: Vec<_> = edges.iter().map(|edge| edge.1).collect();
    lower.sort_by(|&a, &b| compare(a, b));
    lower.dedup_by(|a, b| compare(*a, *b).is_eq());
    edges.sort_by(|a, b| compare(a.0, b.0).then(compare(a.1, b.1)));
    let mut tree = vec![0usize; lower.len() + 1];
    let mut crossings = 0;
    for (seen, edge) in edges.iter().enumerate() {
        let rank = lower.partition_point(|&end| compare(end, edge.1).is_lt()) + 1;
        let mut at = rank;
        let mut before = 0;
        while at > 0 {
            before += tree[at];
            at &= at - 1;
        }
        crossings += seen - before;
        at = rank;
        while at < tree.len() {
            tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    crossings
}
