//! Step: every element gets its class.

use super::{Edge, Element, Flow, Graph};
use crate::graph::target::Target;
use castanet_element::class::{Library, UNKNOWN};
use castanet_element::declaration::ElementDeclarations;
use castanet_lang::{Diagnostic, Diagnostics, FlatElement, FlatGraph, UNDECLARED_CLASS, nearest};

/// Looks the classes up and counts the ports in use. Elements without a class that is known are
/// [`UNKNOWN`], so that the others keep their connections.
pub fn name(flat: &FlatGraph, library: &Library, errors: &mut Diagnostics) -> Graph {
    let mut graph = Graph { sealed: flat.sealed.clone(), ..Graph::default() };
    for it in &flat.elements {
        let class = library.get(&it.class).unwrap_or(&UNKNOWN);
        if class.is_unknown() && it.class != UNDECLARED_CLASS {
            errors.push(unknown(it, library));
        }
        graph.elements.push(Element {
            name: it.name.clone(),
            class,
            config: it.config.clone(),
            span: it.span,
            source: it.clone(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            declarations: ElementDeclarations::default(),
        });
    }
    for it in &flat.connections {
        let from = Target { node: it.from.element, port: it.from.port };
        let to = Target { node: it.to.element, port: it.to.port };
        grow(&mut graph.elements[from.node].outputs, from.port);
        grow(&mut graph.elements[to.node].inputs, to.port);
        graph.edges.push(Edge { from, to, flow: Flow::Agnostic, span: it.span });
    }
    for it in &mut graph.elements {
        let has_ports = !it.inputs.is_empty() || !it.outputs.is_empty();
        it.class = it.class.ported.filter(|_| has_ports).unwrap_or(it.class);
    }
    graph.link();
    graph
}

/// The error about a class that is not known.
fn unknown(it: &FlatElement, library: &Library) -> Diagnostic {
    let near = || Some(format!("did you mean '{}'?", nearest(&it.class, library.names())?));
    let help = library.help_for_absent(&it.class).map(str::to_owned).or_else(near);
    Diagnostic::error(it.span, format!("unknown element class '{}'", it.class))
        .with_maybe_help(help)
}

/// More ports than any element has; the port check says so with the numbers.
const MOST_PORTS: usize = 4096;

fn grow(ports: &mut Vec<Flow>, port: usize) {
    let wanted = (port + 1).min(MOST_PORTS);
    ports.resize(ports.len().max(wanted), Flow::Agnostic);
}
