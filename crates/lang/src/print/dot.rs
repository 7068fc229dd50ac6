//! The flat graph for Graphviz.

use std::fmt::Write;

use super::look::{Kind, PortKinds};
use crate::flat::Flat;

/// A flat graph in Graphviz' language: one record per element with its ports, filled for push,
/// hollow for pull, and its group's colour.
pub fn dot(graph: &Flat, kinds: &dyn PortKinds) -> String {
    let mut out = String::from(
        "digraph router {\n    rankdir=TB;\n    node [shape=record, style=filled, \
         fontname=\"Helvetica\", fontsize=10];\n    edge [fontsize=8];\n",
    );
    for (i, (element, (inputs, outputs))) in graph.elements.iter().zip(graph.ports()).enumerate() {
        let ports = |side: char, count: usize| {
            let all: Vec<_> = (0..count).map(|p| format!("<{side}{p}> {p}")).collect();
            format!("{{{}}}", all.join("|"))
        };
        let mut rows = Vec::new();
        if inputs > 0 {
            rows.push(ports('i', inputs));
        }
        rows.push(format!("{}\\n{}", record(&element.name), record(&element.class)));
        if outputs > 0 {
            rows.push(ports('o', outputs));
        }
        let fill = kinds.color(i).unwrap_or_else(|| "#f4f4f4".to_string());
        let tip = quoted(&element.config);
        let _ = writeln!(
            out,
            "    n{i} [label=\"{{{}}}\", fillcolor=\"{}\", tooltip=\"{tip}\"];",
            rows.join("|"),
            quoted(&fill)
        );
    }
    for (i, connection) in graph.connections.iter().enumerate() {
        let (head, style) = match kinds.connection(i) {
            Kind::Push => ("normal", "solid"),
            Kind::Pull => ("empty", "dashed"),
            Kind::Agnostic => ("vee", "solid"),
        };
        let (from, to) = (connection.from, connection.to);
        let _ = writeln!(
            out,
            "    n{}:o{}:s -> n{}:i{}:n [arrowhead={head}, style={style}, color=\"{}\"];",
            from.element,
            from.port,
            to.element,
            to.port,
            kinds.connection(i).color()
        );
    }
    out.push_str("}\n");
    out
}

/// Text inside a record label.
fn record(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "{}|<>\\\" ".contains(c) {
            out.push('\\');
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}

fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
