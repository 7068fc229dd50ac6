//! Step: every element gets its class.

use super::{Edge, Element, Flow, Graph};
use crate::graph::target::Target;
use castanet_element::class::Library;
use castanet_element::declaration::ElementDeclarations;
use castanet_lang::{Diagnostic, Diagnostics, FlatGraph, nearest};

/// Looks the classes up and counts the ports in use.
pub fn name(flat: &FlatGraph, library: &Library, errors: &mut Diagnostics) -> Graph {
    let mut graph = Graph { sealed: flat.sealed.clone(), ..Graph::default() };
    let mut index = vec![None; flat.elements.len()];
    for (i, it) in flat.elements.iter().enumerate() {
        let Some(class) = library.get(&it.class) else {
            let near = || nearest(&it.class, library.names());
            let help = library.help_for_absent(&it.class).map(str::to_owned);
            errors.push(
                Diagnostic::error(it.span, format!("unknown element class '{}'", it.class))
                    .with_maybe_help(help.or_else(|| Some(format!("did you mean '{}'?", near()?)))),
            );
            continue;
        };
        index[i] = Some(graph.elements.len());
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
        let ends = (index[it.from.element], index[it.to.element]);
        let (Some(from), Some(to)) = ends else { continue };
        let from = Target { node: from, port: it.from.port };
        let to = Target { node: to, port: it.to.port };
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

/// More ports than any element has; the port check says so with the numbers.
const MOST_PORTS: usize = 4096;

fn grow(ports: &mut Vec<Flow>, port: usize) {
    let wanted = (port + 1).min(MOST_PORTS);
    ports.resize(ports.len().max(wanted), Flow::Agnostic);
}
