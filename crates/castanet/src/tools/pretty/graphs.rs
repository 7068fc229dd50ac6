//! Graphs of a configuration for other programs: Graphviz, GML, GraphML.

use castanet_lang::print::escape;
use castanet_lang::{FlatGraph, Processing};
use std::fmt::Write;

/// Returns the label of an element.
pub(super) type Label<'a> = &'a dyn Fn(usize) -> String;

/// For Graphviz: records with a field a port.
pub(super) fn dot(graph: &FlatGraph, label: Label) -> String {
    let mut out = String::from(
        "digraph clickrouter {\n  node [shape=record,height=.1]\n  \
         edge [arrowhead=normal,arrowtail=none,tailclip=false]\n",
    );
    let ports = |letter: char, count: usize| {
        let all: Vec<_> = (0..count).map(|port| format!("<{letter}{port}>")).collect();
        format!("{{{}}}", all.join("|"))
    };
    for (at, (it, (inputs, outputs))) in graph.elements.iter().zip(graph.ports()).enumerate() {
        let mut rows = vec![record(&label(at))];
        if inputs > 0 {
            rows.insert(0, ports('i', inputs));
        }
        if outputs > 0 {
            rows.push(ports('o', outputs));
        }
        let rows = rows.join("|");
        let text = if inputs + outputs > 0 { format!("{{{rows}}}") } else { rows };
        let _ = writeln!(out, "  \"{}\" [label=\"{text}\"];", it.name);
    }
    for c in &graph.connections {
        let name = |element: usize| &graph.elements[element].name;
        let (from, to) = (name(c.from.element), name(c.to.element));
        let _ = writeln!(out, "  \"{from}\":o{} -> \"{to}\":i{};", c.from.port, c.to.port);
    }
    out + "}\n"
}

/// A label inside a record, and in quotes; templates give HTML.
fn record(text: &str) -> String {
    let mut out = String::new();
    for c in super::tags::unquote(text).chars() {
        match c {
            '{' | '}' | '|' | '<' | '>' | '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// In GML, which many drawing programs read.
pub(super) fn gml(graph: &FlatGraph, label: Label) -> String {
    let mut out = String::from("Creator \"click-pretty\"\ngraph\n[ hierarchic 1\n  directed 1\n");
    for at in 0..graph.elements.len() {
        let label = label(at).replace('"', "&quot;");
        let _ = writeln!(out, "  node\n  [ id {at}\n    label \"{label}\"\n  ]");
    }
    let ports = graph.ports();
    for c in &graph.connections {
        let (outputs, inputs) = (ports[c.from.element].1, ports[c.to.element].0);
        let _ = writeln!(
            out,
            "  edge\n  [ source {}\n    target {}\n    edgeAnchor\n    [ xSource {:.6}\n      \
             xTarget {:.6}\n      ySource 1\n      yTarget -1\n    ]\n  ]",
            c.from.element,
            c.to.element,
            anchor(c.from.port, outputs),
            anchor(c.to.port, inputs),
        );
    }
    out + "]\n"
}

/// Where on a side from -1 to 1 a port is: all of them evenly, each in the middle of its part.
fn anchor(port: usize, count: usize) -> f64 {
    (2.0 * port as f64 + 1.0) / count.max(1) as f64 - 1.0
}

const GRAPHML: &str = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd\">
<key id=\"kn\" for=\"node\" attr.name=\"name\" attr.type=\"string\" />
<key id=\"kc\" for=\"node\" attr.name=\"class\" attr.type=\"string\" />
<key id=\"kp\" for=\"port\" attr.name=\"processing\" attr.type=\"string\">
  <default>a</default>
</key>
<graph id=\"G\" edgedefault=\"directed\">
";

/// In GraphML, with ports and how packets move through them.
pub(super) fn graphml(graph: &FlatGraph, processing: &[Processing], label: Label) -> String {
    let mut out = GRAPHML.to_owned();
    let ports = graph.ports();
    for (at, it) in graph.elements.iter().enumerate() {
        let (inputs, outputs) = ports[at];
        let _ = writeln!(
            out,
            "  <node id=\"n{at}\" parse.indegree=\"{inputs}\" parse.outdegree=\"{outputs}\">\n    \
             <data key=\"kn\">{}</data> <data key=\"kc\">{}</data>",
            escape(&it.name),
            label(at),
        );
        let Processing { inputs, outputs } = processing.get(at).cloned().unwrap_or_default();
        for (side, letters) in [('i', inputs), ('o', outputs)] {
            for (port, letter) in letters.iter().enumerate() {
                let _ = writeln!(
                    out,
                    "    <port name=\"{side}{port}\"> <data key=\"kp\">{letter}</data> </port>"
                );
            }
        }
        out.push_str("  </node>\n");
    }
    for (at, c) in graph.connections.iter().enumerate() {
        let _ = writeln!(
            out,
            "  <edge id=\"e{at}\" source=\"n{}\" target=\"n{}\" sourceport=\"o{}\" targetport=\"i{}\" />",
            c.from.element, c.to.element, c.from.port, c.to.port
        );
    }
    out + "</graph>\n</graphml>\n"
}
