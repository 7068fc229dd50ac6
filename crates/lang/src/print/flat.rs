//! Prints a flat graph in Click's form: declarations, a blank line, chains of connections.

use std::collections::HashMap;
use std::fmt::Write;

use crate::flat::{Connection, FlatGraph, Port};

/// Prints a flat graph as Click's tools do: connections by age.
pub fn flat_by_age(graph: &FlatGraph) -> String {
    let mut graph = graph.clone();
    graph.connections.sort_by_key(|connection| connection.age);
    flat(&graph)
}

/// Prints a flat graph as the driver does: connections in their order.
pub fn flat(graph: &FlatGraph) -> String {
    let mut out = String::new();
    if !graph.requirements.is_empty() {
        let _ = writeln!(out, "require({});\n", graph.requirements.join(", "));
    }
    if !graph.defines.is_empty() {
        let all: Vec<_> =
            graph.defines.iter().map(|(name, text)| format!("${name} {text}")).collect();
        let _ = writeln!(out, "define({});\n", all.join(", "));
    }
    for element in &graph.elements {
        let _ = write!(out, "{} :: {}", element.name, element.class);
        if !element.config.is_empty() {
            let _ = write!(out, "({})", element.config);
        }
        out.push_str(";\n");
    }
    if !graph.elements.is_empty() {
        out.push('\n');
    }
    chains(graph, &mut out);
    out
}

/// Prints the connections, in chains as long as possible.
fn chains(graph: &FlatGraph, out: &mut String) {
    let connections = &graph.connections;
    let next = next(connections);
    let mut starts = vec![true; connections.len()];
    for &next in next.iter().flatten() {
        starts[next] = false;
    }
    let mut used = vec![false; connections.len()];
    // Chains come first; the connections left are cycles.
    for only_starts in [true, false] {
        for first in 0..connections.len() {
            if used[first] || (only_starts && !starts[first]) {
                continue;
            }
            let Port { element, port } = connections[first].from;
            out.push_str(&graph.elements[element].name);
            if port > 0 {
                let _ = write!(out, " [{port}]");
            }
            let mut at = Some(first);
            while let Some(current) = at.filter(|&at| !used[at]) {
                out.push_str(if current == first { " -> " } else { "\n    -> " });
                let Port { element, port } = connections[current].to;
                if port > 0 {
                    let _ = write!(out, "[{port}] ");
                }
                out.push_str(&graph.elements[element].name);
                used[current] = true;
                at = next[current];
            }
            out.push_str(";\n");
        }
    }
}

/// Returns for each connection the one that continues its chain, if it ends at an input 0: the
/// first connection from output 0 to another input 0, or else the last one.
fn next(connections: &[Connection]) -> Vec<Option<usize>> {
    let mut from: HashMap<Port, Vec<usize>> = HashMap::new();
    for (i, connection) in connections.iter().enumerate() {
        from.entry(connection.from).or_default().push(i);
    }
    let follow = |(i, connection): (usize, &Connection)| {
        if connection.to.port != 0 {
            return None;
        }
        let others = from.get(&connection.to)?;
        let straight = others.iter().find(|&&d| d != i && connections[d].to.port == 0);
        straight.or_else(|| others.iter().rev().find(|&&d| d != i)).copied()
    };
    connections.iter().enumerate().map(follow).collect()
}
