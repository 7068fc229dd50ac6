//! Layered graph layout after Sugiyama, Tagawa and Toda (1981), aware of ports.

mod coordinates;
mod layers;
mod order;

use crate::flat::Flat;

/// Space between boxes of a layer.
const GAP: f64 = 26.0;
/// Space that an edge takes where it passes a layer.
const LANE: f64 = 12.0;
/// Space between layers.
const RISE: f64 = 52.0;
/// A row of components is broken where it would pass this.
const ROW: f64 = 1800.0;

/// Where everything goes.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) boxes: Vec<Place>,
    pub(super) edges: Vec<Route>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A box.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// Its middle.
    pub(super) x: f64,
    /// Its top.
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
}

impl Place {
    /// Where an input port is, on the upper side.
    pub(super) fn input(&self, port: usize) -> (f64, f64) {
        (self.x + self.offset(port, self.inputs), self.y)
    }

    /// Where an output port is, on the lower side.
    pub(super) fn output(&self, port: usize) -> (f64, f64) {
        (self.x + self.offset(port, self.outputs), self.y + self.height)
    }

    fn offset(&self, port: usize, ports: usize) -> f64 {
        self.width * ((port as f64 + 0.5) / ports.max(1) as f64 - 0.5)
    }
}

/// How an edge runs from an output to an input.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    /// The lanes it takes, from the output on: middle, upper end, lower end.
    pub(super) lanes: Vec<(f64, f64, f64)>,
    /// Whether it runs upwards.
    pub(super) back: bool,
}

/// A box or a lane.
#[derive(Clone, Debug)]
struct Node {
    /// The element, unless it is a lane.
    element: Option<usize>,
    layer: usize,
    /// Position in its layer.
    order: usize,
    x: f64,
    place: Place,
}

/// A piece of an edge between neighbouring layers: node and where on it, from -0.5 to 0.5 of its
/// width.
#[derive(Clone, Copy, Debug)]
struct Piece {
    upper: (usize, f64),
    lower: (usize, f64),
}

/// A connected part of the graph.
#[derive(Debug, Default)]
struct Component {
    nodes: Vec<Node>,
    pieces: Vec<Piece>,
    layers: Vec<Vec<usize>>,
    /// For each edge its index in the graph, the nodes of its lanes from the output on, and whether
    /// it runs upwards.
    routes: Vec<(usize, Vec<usize>, bool)>,
    width: f64,
    height: f64,
}

/// Lays a graph out; `sizes` are the boxes' widths and heights.
pub(super) fn layout(graph: &Flat, sizes: &[(f64, f64)]) -> Layout {
    let boxes: Vec<_> = graph
        .ports()
        .into_iter()
        .zip(sizes)
        .map(|((inputs, outputs), &(width, height))| Place {
            width,
            height,
            inputs,
            outputs,
            ..Place::default()
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
    // The largest first: small ones fill the rows beside it.
    components.sort_by(|a, b| b.height.total_cmp(&a.height));
    let edges = vec![Route::default(); graph.connections.len()];
    let mut layout = Layout { boxes, edges, ..Layout::default() };
    let widest = components.iter().fold(ROW, |width, c| width.max(c.width));
    let (mut x, mut y, mut row) = (0.0, 0.0, 0.0f64);
    for component in components {
        if x > 0.0 && x + component.width > widest {
            (x, y, row) = (0.0, y + row + RISE, 0.0);
        }
        layout.put(&component, x, y);
        x += component.width + 2.0 * GAP;
        row = row.max(component.height);
        layout.width = layout.width.max(x - 2.0 * GAP);
        layout.height = y + row;
    }
    layout
}

impl Layout {
    /// Copies a component to its place.
    fn put(&mut self, component: &Component, x: f64, y: f64) {
        for node in &component.nodes {
            if let Some(element) = node.element {
                self.boxes[element].x = node.x + x;
                self.boxes[element].y = node.place.y + y;
            }
        }
        for (edge, lanes, back) in &component.routes {
            let lane = |&lane: &usize| {
                let Node { x: middle, place, .. } = &component.nodes[lane];
                (middle + x, place.y + y, place.y + place.height + y)
            };
            self.edges[*edge] = Route { lanes: lanes.iter().map(lane).collect(), back: *back };
        }
    }
}
