//! The order within layers: barycenters of ports, sweeping down and up, the best order kept.

use super::Component;

/// An end of an edge: position in the layer, place on the node.
type End = (usize, f64);

const SWEEPS: usize = 24;
/// Sweeps that bring nothing before the search ends.
const PATIENCE: usize = 6;

pub(super) fn order(part: &mut Component) {
    let mut best = crossings(part);
    let mut layers = part.layers.clone();
    let mut idle = 0;
    for sweep in 0..SWEEPS {
        if best == 0 || idle >= PATIENCE {
            break;
        }
        sort_layers(part, sweep % 2 == 0);
        let now = crossings(part);
        if now < best {
            (best, idle) = (now, 0);
            layers.clone_from(&part.layers);
        } else {
            idle += 1;
        }
    }
    part.layers = layers;
    part.number();
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

/// Orders each layer by the mean position of its neighbours in the layer before (`down`) or after.
fn sort_layers(part: &mut Component, down: bool) {
    let mut pulls: Vec<Vec<(usize, f64, f64)>> = vec![Vec::new(); part.nodes.len()];
    for piece in &part.pieces {
        let (moved, fixed) =
            if down { (piece.lower, piece.upper) } else { (piece.upper, piece.lower) };
        pulls[moved.0].push((fixed.0, fixed.1, moved.1));
    }
    let depth = part.layers.len();
    for step in 1..depth {
        let layer = if down { step } else { depth - 1 - step };
        let mut keyed: Vec<(f64, usize)> = part.layers[layer]
            .iter()
            .map(|&node| {
                let pull = &pulls[node];
                let own = part.nodes[node].order as f64;
                if pull.is_empty() {
                    return (own, node);
                }
                // The port on the moved side breaks ties: a straight edge is better.
                let sum: f64 = pull
                    .iter()
                    .map(|&(n, at, own)| part.nodes[n].order as f64 + 0.9 * at - 0.05 * own)
                    .sum();
                (sum / pull.len() as f64, node)
            })
            .collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
        part.layers[layer] = keyed.into_iter().map(|(_, node)| node).collect();
        for (order, &node) in part.layers[layer].iter().enumerate() {
            part.nodes[node].order = order;
        }
    }
}

/// Crossings between all neighbouring layers.
fn crossings(part: &Component) -> usize {
    let mut by_layer: Vec<Vec<(End, End)>> = vec![Vec::new(); part.layers.len()];
    for piece in &part.pieces {
        let upper = &part.nodes[piece.upper.0];
        let lower = &part.nodes[piece.lower.0];
        by_layer[upper.layer].push(((upper.order, piece.upper.1), (lower.order, piece.lower.1)));
    }
    by_layer.iter_mut().map(|edges| inversions(edges)).sum()
}

/// Pairs of edges that cross, counted with a binary indexed tree (Barth, Jünger and Mutzel 2004).
fn inversions(edges: &mut [(End, End)]) -> usize {
    let compare = |a: End, b: End| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
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
