//! FastClick's context links: `a ~> b` gives `a` a dispatcher that tells flows apart.

use std::collections::BTreeMap;

use crate::flat::{Connection, FlatElement, Origin, Port};
use crate::source::Span;
use crate::tree::LinkKind;

/// The class that context links need.
pub(super) const DISPATCHER: &str = "FlowContextDispatcher";

/// A connection, and the context that its link changes to: empty for a bare `~>`.
pub(super) struct Wire {
    pub(super) from: Port,
    pub(super) to: Port,
    pub(super) span: Span,
    pub(super) context: Option<String>,
}

impl Wire {
    pub(super) fn plain(self) -> Connection {
        Connection { from: self.from, to: self.to, span: self.span }
    }
}

/// The context of a link, if it is one of that kind.
pub(super) fn name(kind: &LinkKind) -> Option<String> {
    match kind {
        LinkKind::Context(name) => Some(name.clone()),
        _ => None,
    }
}

/// Puts a dispatcher behind every output port with context links, one output of it a link, and an
/// element that enters (`~IP>`: `IPIn`) or leaves (`~/IP>`: `IPOut`) the context where one is named.
pub(super) fn dispatch(wires: Vec<Wire>, elements: &mut Vec<FlatElement>) -> Vec<Connection> {
    let mut connections = Vec::new();
    let mut contexts: BTreeMap<Port, Vec<Wire>> = BTreeMap::new();
    for wire in wires {
        match wire.context {
            Some(_) => contexts.entry(wire.from).or_default().push(wire),
            None => connections.push(wire.plain()),
        }
    }
    for (from, wires) in contexts {
        let rules: Vec<_> = (0..wires.len()).map(|i| format!("- {i}")).collect();
        let suffix = match from.port {
            0 => from.element.to_string(),
            port => format!("{}_{port}", from.element),
        };
        let span = elements[from.element].span;
        let mut add = |name: String, class: String, config: String| {
            elements.push(FlatElement {
                name,
                class,
                config,
                config_span: None,
                span,
                origin: Origin::default(),
            });
            elements.len() - 1
        };
        let name = format!("context_flowcontextdispatcher_{suffix}");
        let dispatcher = add(name, DISPATCHER.to_string(), rules.join(", "));
        let to = Port { element: dispatcher, port: 0 };
        connections.push(Connection { from, to, span });
        for (i, wire) in wires.into_iter().enumerate() {
            let context = wire.context.as_deref().unwrap_or("");
            let mut from = Port { element: dispatcher, port: i };
            if !context.is_empty() {
                let class = match context.strip_prefix('/') {
                    Some(left) => format!("{}Out", left.to_uppercase()),
                    None => format!("{}In", context.to_uppercase()),
                };
                let number = if i == 0 { String::new() } else { format!("_{i}") };
                let name = format!("context_stack_{suffix}{number}");
                let to = Port { element: add(name, class, String::new()), port: 0 };
                connections.push(Connection { from, to, span: wire.span });
                from = to;
            }
            connections.push(Connection { from, ..wire.plain() });
        }
    }
    connections
}
