//! Layered graph layout with ports, after Sugiyama, Tagawa and Toda (1981).

mod coordinates;
mod layers;
mod order;

use crate::flat::FlatGraph;

/// Space between the boxes of a layer.
const BOX_GAP: f64 = 26.0;
/// Width of the lane in which an edge passes a layer.
const LANE_WIDTH: f64 = 12.0;
/// Space between layers.
const LAYER_GAP: f64 = 52.0;
/// Greatest width of a row of components.
const MAX_ROW_WIDTH: f64 = 1800.0;

/// Positions of all boxes and edges.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) boxes: Vec<ElementBox>,
    pub(super) edges: Vec<Route>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// The box of an element, or the extent of a lane.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ElementBox {
    /// Horizontal middle.
    pub(super) x: f64,
    /// Top edge.
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
}

impl ElementBox {
    /// Position of an input port, on the upper side.
    pub(super) fn input(&self, port: usize) -> (f64, f64) {
        (self.x + self.offset(port, self.inputs), self.y)
    }

    /// Position of an output port, on the lower side.
    pub(super) fn output(&self, port: usize) -> (f64, f64) {
        (self.x + self.offset(port, self.outputs), self.y + self.height)
    }

    fn offset(&self, port: usize, ports: usize) -> f64 {
        self.width * ((port as f64 + 0.5) / ports.max(1) as f64 - 0.5)
    }
}

/// The route of an edge from an output to an input.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    /// The lanes that it passes, from the output on: middle, upper end, lower end.
    pub(super) lanes: Vec<(f64, f64, f64)>,
    /// Whether the edge runs upwards.
    pub(super) back: bool,
}

/// A box or a lane of a component.
#[derive(Clone, Debug)]
struct Node {
    /// The element, unless it is a lane.
    element: Option<usize>,
    layer: usize,
    /// Position in its layer.
    order: usize,
    x: f64,
    geometry: ElementBox,
}

/// A segment of an edge between neighbouring layers. Each end is a node and the position on it,
/// from
/// -0.5 to 0.5 of the node's width.
#[derive(Clone, Copy, Debug)]
struct Segment {
    upper: (usize, f64),
    lower: (usize, f64),
}

/// A connected component of the graph.
#[derive(Debug, Default)]
struct Component {
    nodes: Vec<Node>,
    segments: Vec<Segment>,
    layers: Vec<Vec<usize>>,
    /// For each edge its index in the graph, the nodes of its lanes from the output on, and whether
    /// it runs upwards.
    routes: Vec<(usize, Vec<usize>, bool)>,
    width: f64,
    height: f64,
}

/// Computes the layout of a graph; `sizes` are the widths and heights of its boxes.
pub(super) fn layout(graph: &FlatGraph, sizes: &[(f64, f64)]) -> Layout {
    let boxes: Vec<_> = graph
        .ports()
        .into_iter()
        .zip(sizes)
        .map(|((inputs, outputs), &(width, height))| ElementBox {
            width,
            height,
            inputs,
            outputs,
            ..ElementBox::default()
        })
        .collect();
    let mut components: Vec<_> = layers::components(graph)
        .into_iter()
        .map(|(elements, edges)| {
            let mut component = layers::component(graph, &boxes, &elements, &edges);
            order::order(&mut component);
            coordinates::assign(&mut component);
            component
        })
        .collect();
    // The highest component comes first, so that low ones fill the rows beside it.
    components.sort_by(|a, b| b.height.total_cmp(&a.height));
    let edges = vec![Route::default(); graph.connections.len()];
    let mut layout = Layout { boxes, edges, ..Layout::default() };
    let widest = components.iter().fold(MAX_ROW_WIDTH, |width, c| width.max(c.width));
    let (mut x, mut y, mut row) = (0.0, 0.0, 0.0f64);
    for component in components {
        if x > 0.0 && x + component.width > widest {
            (x, y, row) = (0.0, y + row + LAYER_GAP, 0.0);
        }
        layout.add(&component, x, y);
        x += component.width + 2.0 * BOX_GAP;
        row = row.max(component.height);
        layout.width = layout.width.max(x - 2.0 * BOX_GAP);
        layout.height = y + row;
    }
    layout
}

impl Layout {
    /// Adds a component with its upper left corner at (`x`, `y`).
    fn add(&mut self, component: &Component, x: f64, y: f64) {
        for node in &component.nodes {
            if let Some(element) = node.element {
                self.boxes[element].x = node.x + x;
                self.boxes[element].y = node.geometry.y + y;
            }
        }
        for (edge, lanes, back) in &component.routes {
            let lane = |&lane: &usize| {
                let Node { x: middle, geometry, .. } = &component.nodes[lane];
                (middle + x, geometry.y + y, geometry.y + geometry.height + y)
            };
            self.edges[*edge] = Route { lanes: lanes.iter().map(lane).collect(), back: *back };
        }
    }
}
