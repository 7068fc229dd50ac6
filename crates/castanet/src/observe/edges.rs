//! Rates on connections, which follow from those of elements: no connection has a counter of its own.

use super::rates::ElementRates;
use castanet_runtime::graph::Graph;
use serde::Serialize;

/// The rate on a connection.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct EdgeRate {
    pub(crate) packets_per_second: f64,
    /// Whether the rate is only the most that can pass there: packets that split at one element and meet
    /// again at another one are not told apart.
    pub(crate) is_bound: bool,
}

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
            if rate.is_some() || (from.unknown > 1 && to.unknown > 1) {
                continue;
            }
            // The input is counted first where both tell it: packets may wait behind an output.
            let known = if to.unknown == 1 { to.left } else { from.left };
            for end in [from, to] {
                end.left = (end.left - known).max(0.0);
                end.unknown -= 1;
            }
            *rate = Some(known);
            found = true;
        }
    }
    let known = |(edge, rate): (&castanet_runtime::graph::Edge, &Option<f64>)| {
        let most = || outputs[edge.from.node].left.min(inputs[edge.to.node].left);
        // Nothing passes where nothing can.
        let is_bound = rate.is_none() && most() > 0.0;
        EdgeRate { packets_per_second: rate.unwrap_or_else(most), is_bound }
    };
    graph.edges.iter().zip(&rates).map(known).collect()
}
