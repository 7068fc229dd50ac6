//! Prints a flat graph in Graphviz' language.

use std::fmt::Write;

use super::drawing_info::{ConnectionKind, DrawingInfo};
use crate::flat::FlatGraph;

/// Prints a flat graph in Graphviz' language: one record for each element, with its ports and its
/// colour. Connections have filled arrowheads for push and hollow ones for pull.
pub fn dot(graph: &FlatGraph, info: &dyn DrawingInfo) -> String {
    let mut out = String::from(
        "digraph router {\n    rankdir=TB;\n    node [shape=record, style=filled, \
         fontname=\"Helvetica\", fontsize=10];\n    edge [fontsize=8];\n",
    );
    for (i, (element, (inputs, outputs))) in graph.elements.iter().zip(graph.ports()).enumerate() {
        let ports = |side: char, count: usize| {
            let all: Vec<_> = (0..count).map(|p| format!("<{side}{p}> {p}")).collect();
            format!("{{{}}}", all.join("|"))
        };
        let mut fields = Vec::new();
        if inputs > 0 {
            fields.push(ports('i', inputs));
        }
        fields.push(format!("{}\\n{}", record(&element.name), record(&element.class)));
        if outputs > 0 {
            fields.push(ports('o', outputs));
        }
        let fill = info.color(i).unwrap_or_else(|| "#f4f4f4".to_string());
        let tip = quoted(&element.config);
        let _ = writeln!(
            out,
            "    n{i} [label=\"{{{}}}\", fillcolor=\"{}\", tooltip=\"{tip}\"];",
            fields.join("|"),
            quoted(&fill)
        );
    }
    for (i, connection) in graph.connections.iter().enumerate() {
        let (head, style) = match info.connection(i) {
            ConnectionKind::Push => ("normal", "solid"),
            ConnectionKind::Pull => ("empty", "dashed"),
            ConnectionKind::Agnostic => ("vee", "solid"),
        };
        let (from, to) = (connection.from, connection.to);
        let _ = writeln!(
            out,
            "    n{}:o{}:s -> n{}:i{}:n [arrowhead={head}, style={style}, color=\"{}\"];",
            from.element,
            from.port,
            to.element,
            to.port,
            info.connection(i).color()
        );
    }
    out.push_str("}\n");
    out
}

/// Escapes text inside a record label.
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
