//! Coordinates: each layer as near as its order allows to where its neighbours want it.

use super::{Component, GAP, LANE, RISE};

const PASSES: usize = 12;
/// Long edges should be straight: their lanes pull harder than boxes.
const LANE_WEIGHT: f64 = 8.0;

pub(super) fn assign(part: &mut Component) {
    vertical(part);
    for layer in 0..part.layers.len() {
        let mut x = 0.0;
        for i in 0..part.layers[layer].len() {
            let node = part.layers[layer][i];
            let width = part.nodes[node].place.width;
            part.nodes[node].x = x + width / 2.0;
            x += width + GAP;
        }
    }
    for pass in 0..PASSES {
        let last = pass + 2 >= PASSES;
        let (down, up) = if last { (true, true) } else { (pass % 2 == 0, pass % 2 == 1) };
        relax(part, down, up);
    }
    let edge = |part: &Component, side: f64| {
        let ends = part.nodes.iter().map(|n| side * (n.x + side * n.place.width / 2.0));
        side * ends.fold(f64::NEG_INFINITY, f64::max)
    };
    let (left, right) = (edge(part, -1.0), edge(part, 1.0));
    part.nodes.iter_mut().for_each(|node| node.x -= left);
    part.width = right - left;
}

/// Heights of layers; a box stands in the middle of its layer, a lane fills it.
fn vertical(part: &mut Component) {
    let mut y = 0.0;
    for layer in 0..part.layers.len() {
        let nodes = part.layers[layer].iter();
        let height = nodes.clone().map(|&n| part.nodes[n].place.height).fold(0.0, f64::max);
        // Many edges that run sideways need room.
        let room = RISE + (nodes.len() as f64 * 1.5).min(60.0);
        for i in 0..part.layers[layer].len() {
            let node = part.layers[layer][i];
            let node = &mut part.nodes[node];
            if node.element.is_none() {
                node.place.height = height;
            }
            node.place.y = y + (height - node.place.height) / 2.0;
        }
        y += height + room;
        part.height = y - room;
    }
}

/// Moves every layer towards its neighbours above (`down`) and below (`up`).
fn relax(part: &mut Component, down: bool, up: bool) {
    // Sum and weight of where each node is wanted.
    let mut pulls: Vec<Vec<(usize, f64, f64)>> = vec![Vec::new(); part.nodes.len()];
    for piece in &part.pieces {
        let (upper, lower) = (piece.upper, piece.lower);
        if down {
            pulls[lower.0].push((upper.0, upper.1, lower.1));
        }
        if up {
            pulls[upper.0].push((lower.0, lower.1, upper.1));
        }
    }
    let depth = part.layers.len();
    for step in 0..depth {
        let layer = if down { step } else { depth - 1 - step };
        let nodes = &part.layers[layer];
        let mut wanted = Vec::with_capacity(nodes.len());
        for &node in nodes {
            let own = &part.nodes[node];
            let mut sum = 0.0;
            for &(other, at, here) in &pulls[node] {
                let other = &part.nodes[other];
                sum += other.x + at * other.place.width - here * own.place.width;
            }
            let count = pulls[node].len();
            let lane = own.element.is_none();
            let weight = if lane { LANE_WEIGHT } else { 1.0 + count as f64 };
            match count {
                0 => wanted.push((own.x, 0.1)),
                _ => wanted.push((sum / count as f64, weight)),
            }
        }
        let half = |node: usize| part.nodes[node].place.width / 2.0;
        let gap = |a: usize, b: usize| {
            let lane = |n: usize| part.nodes[n].element.is_none();
            let space = if lane(a) && lane(b) { LANE / 3.0 } else { GAP };
            half(a) + half(b) + space
        };
        let gaps: Vec<_> = nodes.windows(2).map(|pair| gap(pair[0], pair[1])).collect();
        for (node, x) in nodes.clone().into_iter().zip(fit(&wanted, &gaps)) {
            part.nodes[node].x = x;
        }
    }
}

/// The places nearest to those wanted (weighted least squares) that keep order and gaps: isotonic
/// regression by pooling adjacent violators.
fn fit(wanted: &[(f64, f64)], gaps: &[f64]) -> Vec<f64> {
    let mut offsets = vec![0.0; wanted.len()];
    for (i, gap) in gaps.iter().enumerate() {
        offsets[i + 1] = offsets[i] + gap;
    }
    // Blocks: weighted mean, weight, number of places.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for (&(x, weight), offset) in wanted.iter().zip(&offsets) {
        let mut block = (x - offset, weight, 1);
        while let Some(&(mean, weight, count)) = blocks.last() {
            if mean <= block.0 {
                break;
            }
            let total = weight + block.1;
            block = ((mean * weight + block.0 * block.1) / total, total, count + block.2);
            blocks.pop();
        }
        blocks.push(block);
    }
    let places = blocks.iter().flat_map(|&(mean, _, count)| std::iter::repeat_n(mean, count));
    places.zip(&offsets).map(|(mean, offset)| mean + offset).collect()
}
