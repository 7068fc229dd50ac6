//! Splits a graph into connected components, removes cycles, assigns elements to layers, and adds a
//! lane in every layer that an edge passes.

use super::{Component, ElementBox, LANE_WIDTH, Node, Segment};
use crate::flat::{Connection, FlatGraph};

/// Most lanes of a component; further long edges get no lanes and run straight.
const MAX_LANES: usize = 200_000;

/// Returns elements and connections of each connected component, in the order of their first
/// elements.
pub(super) fn components(graph: &FlatGraph) -> Vec<(Vec<usize>, Vec<usize>)> {
    let mut group: Vec<usize> = (0..graph.elements.len()).collect();
    fn root(group: &mut [usize], mut at: usize) -> usize {
        while group[at] != at {
            group[at] = group[group[at]];
            at = group[at];
        }
        at
    }
    for Connection { from, to, .. } in &graph.connections {
        let (a, b) = (root(&mut group, from.element), root(&mut group, to.element));
        group[a.max(b)] = a.min(b);
    }
    let mut number = vec![usize::MAX; graph.elements.len()];
    let mut components: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for element in 0..graph.elements.len() {
        let root = root(&mut group, element);
        if number[root] == usize::MAX {
            number[root] = components.len();
            components.push(Default::default());
        }
        components[number[root]].0.push(element);
    }
    for (i, connection) in graph.connections.iter().enumerate() {
        let root = root(&mut group, connection.from.element);
        components[number[root]].1.push(i);
    }
    components
}

/// Builds a component with its layers.
pub(super) fn component(
    graph: &FlatGraph,
    boxes: &[ElementBox],
    elements: &[usize],
    edges: &[usize],
) -> Component {
    let local = |element: usize| elements.binary_search(&element).unwrap_or_default();
    let ends: Vec<_> = edges
        .iter()
        .map(|&edge| {
            let Connection { from, to, .. } = graph.connections[edge];
            (local(from.element), local(to.element))
        })
        .collect();
    let back = back_edges(elements.len(), &ends);
    let layer = layers(elements.len(), &ends, &back);
    let mut component = Component::default();
    for (&element, &layer) in elements.iter().zip(&layer) {
        component.node(Some(element), layer, boxes[element]);
    }
    let mut lanes = MAX_LANES;
    for ((&edge, &(from, to)), &back) in edges.iter().zip(&ends).zip(&back) {
        let Connection { from: output, to: input, .. } = graph.connections[edge];
        let at = |port: usize, ports: usize| (port as f64 + 0.5) / ports.max(1) as f64 - 0.5;
        let output = (from, at(output.port, boxes[output.element].outputs));
        let input = (to, at(input.port, boxes[input.element].inputs));
        // An edge that runs upwards passes beside both of its elements.
        let passed = if back {
            layer[to].min(layer[from])..layer[from] + 1
        } else {
            layer[from] + 1..layer[to]
        };
        if passed.len() > lanes {
            component.routes.push((edge, Vec::new(), back));
            continue;
        }
        lanes -= passed.len();
        let lane = ElementBox { width: LANE_WIDTH, ..ElementBox::default() };
        let mut chain: Vec<_> = passed.map(|layer| component.node(None, layer, lane)).collect();
        component.segments(&chain, (!back).then_some((output, input)));
        if back {
            chain.reverse();
        }
        component.routes.push((edge, chain, back));
    }
    component
}

impl Component {
    fn node(&mut self, element: Option<usize>, layer: usize, geometry: ElementBox) -> usize {
        let at = self.nodes.len();
        if self.layers.len() <= layer {
            self.layers.resize(layer + 1, Vec::new());
        }
        let order = self.layers[layer].len();
        self.layers[layer].push(at);
        self.nodes.push(Node { element, layer, order, x: 0.0, geometry });
        at
    }

    /// Adds the segments between the lanes of an edge, and between the lanes and its ends.
    fn segments(&mut self, lanes: &[usize], ends: Option<((usize, f64), (usize, f64))>) {
        let middle = |&lane: &usize| (lane, 0.0);
        let mut chain: Vec<_> = lanes.iter().map(middle).collect();
        if let Some((output, input)) = ends {
            chain.insert(0, output);
            chain.push(input);
        }
        let pairs = chain.windows(2).map(|pair| Segment { upper: pair[0], lower: pair[1] });
        self.segments.extend(pairs);
    }
}

/// Returns for each edge whether it closes a cycle in a depth-first walk.
fn back_edges(nodes: usize, ends: &[(usize, usize)]) -> Vec<bool> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    let mut fed = vec![false; nodes];
    for (edge, &(from, to)) in ends.iter().enumerate() {
        out[from].push(edge);
        fed[to] |= from != to;
    }
    let mut back = vec![false; ends.len()];
    // 0: not visited, 1: on the stack, 2: finished.
    let mut state = vec![0u8; nodes];
    // Sources come first, so that cycles are cut at the edge by which packets return.
    let roots = (0..nodes).filter(|&n| !fed[n]).chain(0..nodes);
    for root in roots {
        if state[root] != 0 {
            continue;
        }
        let mut stack = vec![(root, 0)];
        state[root] = 1;
        while let Some((node, next)) = stack.last_mut() {
            let Some(&edge) = out[*node].get(*next) else {
                state[*node] = 2;
                stack.pop();
                continue;
            };
            *next += 1;
            let to = ends[edge].1;
            match state[to] {
                0 => {
                    state[to] = 1;
                    stack.push((to, 0));
                }
                1 => back[edge] = true,
                _ => {}
            }
        }
    }
    back
}

/// Returns the layer of each node: the length of the longest path from the top. Then nodes without
/// inputs move as low as possible.
fn layers(nodes: usize, ends: &[(usize, usize)], back: &[bool]) -> Vec<usize> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    let mut fed = vec![0usize; nodes];
    for (&(from, to), _) in ends.iter().zip(back).filter(|(_, back)| !**back) {
        out[from].push(to);
        fed[to] += 1;
    }
    let sources: Vec<_> = (0..nodes).filter(|&node| fed[node] == 0).collect();
    let mut layer = vec![0usize; nodes];
    let mut ready = sources.clone();
    while let Some(node) = ready.pop() {
        for &to in &out[node] {
            layer[to] = layer[to].max(layer[node] + 1);
            fed[to] -= 1;
            if fed[to] == 0 {
                ready.push(to);
            }
        }
    }
    for &source in &sources {
        if let Some(first) = out[source].iter().map(|&to| layer[to]).min() {
            layer[source] = first.saturating_sub(1);
        }
    }
    layer
}
