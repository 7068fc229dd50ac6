//! FastClick's context links: `a ~> b` puts a dispatcher behind `a` that classifies flows.

use std::collections::BTreeMap;

use crate::flat::{ConfigOrigin, Connection, FlatElement, Port};
use crate::source::Span;
use crate::tree::LinkKind;

/// The dispatcher's class; without it, context links are ordinary ones.
pub(super) const DISPATCHER: &str = "FlowContextDispatcher";

/// A connection, and the context that its link changes to, if any: empty for a bare `~>`.
pub(super) struct ContextConnection {
    pub(super) from: Port,
    pub(super) to: Port,
    pub(super) span: Span,
    pub(super) context: Option<String>,
}

impl ContextConnection {
    pub(super) fn plain(self) -> Connection {
        // The age is known when all connections are.
        Connection { from: self.from, to: self.to, span: self.span, age: 0 }
    }
}

/// Returns the context of a link, if it is a context link.
pub(super) fn name(kind: &LinkKind) -> Option<String> {
    match kind {
        LinkKind::Context(name) => Some(name.clone()),
        _ => None,
    }
}

/// Puts a dispatcher behind every output port with context links, with one output for each link. A
/// link that names a context also gets an element that enters it (`~IP>`: `IPIn`) or leaves it
/// (`~/IP>`: `IPOut`).
pub(super) fn dispatch(
    all: Vec<ContextConnection>,
    elements: &mut Vec<FlatElement>,
) -> Vec<Connection> {
    let mut connections = Vec::new();
    let mut contexts: BTreeMap<Port, Vec<ContextConnection>> = BTreeMap::new();
    for connection in all {
        match connection.context {
            Some(_) => contexts.entry(connection.from).or_default().push(connection),
            None => connections.push(connection.plain()),
        }
    }
    for (from, links) in contexts {
        let rules: Vec<_> = (0..links.len()).map(|i| format!("- {i}")).collect();
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
                origin: ConfigOrigin::default(),
            });
            elements.len() - 1
        };
        let name = format!("context_flowcontextdispatcher_{suffix}");
        let dispatcher = add(name, DISPATCHER.to_string(), rules.join(", "));
        let to = Port { element: dispatcher, port: 0 };
        connections.push(Connection { from, to, span, age: 0 });
        for (i, connection) in links.into_iter().enumerate() {
            let context = connection.context.as_deref().unwrap_or("");
            let mut from = Port { element: dispatcher, port: i };
            if !context.is_empty() {
                let class = match context.strip_prefix('/') {
                    Some(left) => format!("{}Out", left.to_uppercase()),
                    None => format!("{}In", context.to_uppercase()),
                };
                let number = if i == 0 { String::new() } else { format!("_{i}") };
                let name = format!("context_stack_{suffix}{number}");
                let to = Port { element: add(name, class, String::new()), port: 0 };
                connections.push(Connection { from, to, span: connection.span, age: 0 });
                from = to;
            }
            connections.push(Connection { from, ..connection.plain() });
        }
    }
    connections
}
