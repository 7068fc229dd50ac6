//! The graph of a router, as the page draws it.

use castanet_element::flow::Flow;
use castanet_runtime::graph::{Edge, Element};
use castanet_runtime::router::Router;
use serde::Serialize;

/// Characters of a configuration that the page gets.
const MOST_ARGUMENTS: usize = 4096;

/// Elements and connections of a router.
#[derive(Serialize)]
pub(crate) struct GraphDescription {
    version: GraphVersion,
    /// Elements, in the order of the flat configuration.
    elements: Vec<ElementDescription>,
    edges: Vec<EdgeDescription>,
}

/// Version of a graph: another instance, or another configuration of the same one, has another.
#[derive(Clone, Copy, PartialEq, Serialize)]
pub(crate) struct GraphVersion {
    /// When the instance began to run: nanoseconds since the epoch.
    pub(crate) started: i64,
    /// How often its configuration was replaced.
    pub(crate) replaced: u64,
}

/// An element.
#[derive(Serialize)]
struct ElementDescription {
    /// Its name, after the names of the compounds around it and a slash each.
    name: String,
    class: String,
    /// Its configuration string.
    arguments: String,
    /// Number of its connected inputs.
    inputs: usize,
    /// Number of its connected outputs.
    outputs: usize,
}

/// A connection.
#[derive(Serialize)]
struct EdgeDescription {
    /// Index of the element that packets come from.
    from: usize,
    output: usize,
    /// The name of the output, where its class gives it one.
    exit: Option<&'static str>,
    /// Index of the element that packets come to.
    to: usize,
    input: usize,
    is_pull: bool,
}

impl GraphDescription {
    /// The graph that runs, in an instance that began to run at this time.
    pub(crate) fn of(router: &Router, started: i64) -> GraphDescription {
        let graph = router.graph();
        let elements = graph.elements.iter().map(ElementDescription::of).collect();
        let edge = |edge: &Edge| {
            let class = graph.elements[edge.from.node].class;
            EdgeDescription {
                from: edge.from.node,
                output: edge.from.port,
                exit: class.outputs().nth(edge.from.port).map(|fate| fate.name),
                to: edge.to.node,
                input: edge.to.port,
                is_pull: edge.flow == Flow::Pull,
            }
        };
        let edges = graph.edges.iter().map(edge).collect();
        let version = GraphVersion { started, replaced: router.replaced() };
        GraphDescription { version, elements, edges }
    }
}

impl ElementDescription {
    fn of(element: &Element) -> ElementDescription {
        ElementDescription {
            name: element.name.clone(),
            class: element.source.class.clone(),
            arguments: shortened(&element.config, MOST_ARGUMENTS),
            inputs: element.inputs.len(),
            outputs: element.outputs.len(),
        }
    }
}

/// A text with so many characters at most; an ellipsis stands for the rest.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
