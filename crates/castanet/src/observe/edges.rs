//! Rates on connections, which follow from those of elements: no connection has a counter of its own.

use super::rates::ElementRates;
use castanet_runtime::graph::{Edge, Graph};
use serde::Serialize;

/// The rate on a connection.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct EdgeRate {
    /// Packets a second; if there are bounds, the most that can pass.
    pub(crate) packets_per_second: f64,
    /// Where packets split at one element and meet again at another one, which are not told apart: those of
    /// the first element, and those of the second, that the connection shares with others.
    pub(crate) bounds: Option<[f64; 2]>,
}

/// A rate below this is none: what is left of a sum of rates.
const NONE: f64 = 1e-3;

/// Packets that no connection accounts for yet, at one end of connections.
#[derive(Clone, Default)]
struct End {
    /// Packets a second.
    left: f64,
    /// Connections of which no rate is known.
    unknown: usize,
}

/// The rates on all connections of a graph, whose elements have these rates.
pub(crate) fn edge_rates(graph: &Graph, elements: &[ElementRates]) -> Vec<EdgeRate> {
    let end = |left| End { left, unknown: 0 };
    let mut outputs: Vec<End> = elements.iter().map(|it| end(it.output_per_second)).collect();
    let mut inputs: Vec<End> = elements.iter().map(|it| end(it.input_per_second)).collect();
    for edge in &graph.edges {
        outputs[edge.from.node].unknown += 1;
        inputs[edge.to.node].unknown += 1;
    }
    let mut rates: Vec<Option<f64>> = vec![None; graph.edges.len()];
    // An element all of whose connections but one are known tells the last one.
    let mut found = true;
    while std::mem::take(&mut found) {
        for (edge, rate) in graph.edges.iter().zip(&mut rates) {
            let (from, to) = (&mut outputs[edge.from.node], &mut inputs[edge.to.node]);
            // The input is counted first where both tell it: packets may wait behind an output.
            let known = match rate {
                Some(_) => continue,
                None if to.unknown == 1 => to.left,
                None if from.unknown == 1 => from.left,
                None if from.left.min(to.left) < NONE => 0.0,
                None => continue,
            };
            for end in [from, to] {
                end.left = (end.left - known).max(0.0);
                end.unknown -= 1;
            }
            *rate = Some(known);
            found = true;
        }
    }
    let known = |(edge, rate): (&Edge, &Option<f64>)| match *rate {
        Some(packets_per_second) => EdgeRate { packets_per_second, bounds: None },
        None => {
            let bounds = [outputs[edge.from.node].left, inputs[edge.to.node].left];
            EdgeRate { packets_per_second: bounds[0].min(bounds[1]), bounds: Some(bounds) }
        }
    };
    graph.edges.iter().zip(&rates).map(known).collect()
}
