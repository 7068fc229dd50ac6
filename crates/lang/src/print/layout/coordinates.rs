//! Assigns coordinates: moves the nodes of each layer towards their neighbours, in the given order.

use super::{BOX_GAP, Component, LANE_WIDTH, LAYER_GAP};

const PASSES: usize = 12;
/// Weight of lanes, which is greater than that of boxes so that long edges are straight.
const LANE_WEIGHT: f64 = 8.0;

pub(super) fn assign(component: &mut Component) {
    vertical(component);
    for layer in 0..component.layers.len() {
        let mut x = 0.0;
        for i in 0..component.layers[layer].len() {
            let node = component.layers[layer][i];
            let width = component.nodes[node].geometry.width;
            component.nodes[node].x = x + width / 2.0;
            x += width + BOX_GAP;
        }
    }
    for pass in 0..PASSES {
        let last = pass + 2 >= PASSES;
        let (down, up) = if last { (true, true) } else { (pass % 2 == 0, pass % 2 == 1) };
        relax(component, down, up);
    }
    let edge = |component: &Component, side: f64| {
        let ends = component.nodes.iter().map(|n| side * (n.x + side * n.geometry.width / 2.0));
        side * ends.fold(f64::NEG_INFINITY, f64::max)
    };
    let (left, right) = (edge(component, -1.0), edge(component, 1.0));
    component.nodes.iter_mut().for_each(|node| node.x -= left);
    component.width = right - left;
}

/// Sets vertical positions: a box is in the middle of its layer, a lane fills the layer.
fn vertical(component: &mut Component) {
    let mut y = 0.0;
    for layer in 0..component.layers.len() {
        let nodes = component.layers[layer].iter();
        let height = nodes.clone().map(|&n| component.nodes[n].geometry.height).fold(0.0, f64::max);
        // Many edges that run sideways need more space.
        let room = LAYER_GAP + (nodes.len() as f64 * 1.5).min(60.0);
        for i in 0..component.layers[layer].len() {
            let node = component.layers[layer][i];
            let node = &mut component.nodes[node];
            if node.element.is_none() {
                node.geometry.height = height;
            }
            node.geometry.y = y + (height - node.geometry.height) / 2.0;
        }
        y += height + room;
        component.height = y - room;
    }
}

/// Moves every layer towards its neighbours above (`down`) and below (`up`).
fn relax(component: &mut Component, down: bool, up: bool) {
    // For each node its neighbours, with the positions of the edge on the neighbour and on the
    // node.
    let mut pulls: Vec<Vec<(usize, f64, f64)>> = vec![Vec::new(); component.nodes.len()];
    for segment in &component.segments {
        let (upper, lower) = (segment.upper, segment.lower);
        if down {
            pulls[lower.0].push((upper.0, upper.1, lower.1));
        }
        if up {
            pulls[upper.0].push((lower.0, lower.1, upper.1));
        }
    }
    let depth = component.layers.len();
    for step in 0..depth {
        let layer = if down { step } else { depth - 1 - step };
        let nodes = &component.layers[layer];
        let mut wanted = Vec::with_capacity(nodes.len());
        for &node in nodes {
            let own = &component.nodes[node];
            let mut sum = 0.0;
            for &(other, at, here) in &pulls[node] {
                let other = &component.nodes[other];
                sum += other.x + at * other.geometry.width - here * own.geometry.width;
            }
            let count = pulls[node].len();
            let lane = own.element.is_none();
            let weight = if lane { LANE_WEIGHT } else { 1.0 + count as f64 };
            match count {
                0 => wanted.push((own.x, 0.1)),
                _ => wanted.push((sum / count as f64, weight)),
            }
        }
        let half = |node: usize| component.nodes[node].geometry.width / 2.0;
        let gap = |a: usize, b: usize| {
            let lane = |n: usize| component.nodes[n].element.is_none();
            let space = if lane(a) && lane(b) { LANE_WIDTH / 3.0 } else { BOX_GAP };
            half(a) + half(b) + space
        };
        let gaps: Vec<_> = nodes.windows(2).map(|pair| gap(pair[0], pair[1])).collect();
        for (node, x) in nodes.clone().into_iter().zip(fit(&wanted, &gaps)) {
            component.nodes[node].x = x;
        }
    }
}

/// Returns the positions nearest to those wanted (weighted least squares) that keep order and gaps:
/// isotonic regression by pooling adjacent violators.
fn fit(wanted: &[(f64, f64)], gaps: &[f64]) -> Vec<f64> {
    let mut offsets = vec![0.0; wanted.len()];
    for (i, gap) in gaps.iter().enumerate() {
        offsets[i + 1] = offsets[i] + gap;
    }
    // Each block is a weighted mean, a weight and a number of positions.
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
    let positions = blocks.iter().flat_map(|&(mean, _, count)| std::iter::repeat_n(mean, count));
    positions.zip(&offsets).map(|(mean, offset)| mean + offset).collect()
}
