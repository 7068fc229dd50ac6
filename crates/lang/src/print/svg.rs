//! Draws a flat graph as SVG: boxes in layers, ports, and edges by how packets move.

use std::fmt::Write;

use super::drawing_info::{ConnectionKind, DrawingInfo};
use super::layout::{ElementBox, Route, layout};
use super::xml::push_escaped;
use crate::flat::{FlatElement, FlatGraph};

const MARGIN: f64 = 30.0;
/// Most characters of a configuration string that a box shows.
const MAX_CONFIG: usize = 30;
const LINE_HEIGHT: f64 = 13.0;
/// Distance by which an edge that runs upwards swings out below and above.
const BACK_EDGE_SWING: f64 = 30.0;

/// Draws a flat graph as SVG. Packets flow downwards; inputs are triangles, outputs squares, filled
/// for push, hollow for pull, grey for agnostic; pull edges are dashed.
pub fn svg(graph: &FlatGraph, info: &dyn DrawingInfo) -> String {
    let texts: Vec<_> =
        graph.elements.iter().enumerate().map(|(i, e)| lines(e, info.note(i))).collect();
    let ports = graph.ports();
    let sizes: Vec<_> =
        texts.iter().zip(&ports).map(|(lines, ports)| size(lines, *ports)).collect();
    let layout_result = layout(graph, &sizes);
    let (width, height) =
        (layout_result.width + 2.0 * MARGIN, layout_result.height + 2.0 * MARGIN + 30.0);
    let width = width.max(400.0);
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"{:.0} {:.0} {width:.0} {height:.0}\" \
         font-family=\"Helvetica, Arial, sans-serif\">\n\
         <rect x=\"-{MARGIN}\" y=\"-{MARGIN}\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        -MARGIN, -MARGIN,
    );
    out.push_str("<g fill=\"none\" stroke-width=\"1.4\">\n");
    for (i, (connection, route)) in graph.connections.iter().zip(&layout_result.edges).enumerate() {
        let from = layout_result.boxes[connection.from.element].output(connection.from.port);
        let to = layout_result.boxes[connection.to.element].input(connection.to.port);
        edge(&mut out, from, to, route, info.connection(i));
    }
    out.push_str("</g>\n");
    for (i, (element, lines)) in graph.elements.iter().zip(&texts).enumerate() {
        let color = info.color(i).unwrap_or_else(|| "#f6f6f2".to_string());
        draw_box(&mut out, element, lines, &layout_result.boxes[i], &color);
    }
    let (inputs, outputs) = port_kinds(graph, info, &ports);
    for (element_box, (inputs, outputs)) in
        layout_result.boxes.iter().zip(inputs.iter().zip(&outputs))
    {
        port_marks(&mut out, element_box, inputs, outputs);
    }
    legend(&mut out, layout_result.height + MARGIN);
    out.push_str("</svg>\n");
    out
}

/// Returns the lines of a box and their styles.
fn lines(element: &FlatElement, note: Option<String>) -> Vec<(String, Style)> {
    let mut lines = vec![(element.class.clone(), Style::Class)];
    lines.push((element.name.clone(), Style::Name));
    if !element.config.is_empty() {
        let config: String = element.config.split_whitespace().collect::<Vec<_>>().join(" ");
        lines.push((shorten(&config, MAX_CONFIG), Style::Config));
    }
    lines.extend(note.map(|note| (note, Style::Note)));
    lines
}

fn shorten(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// Style of a line of text in a box.
#[derive(Clone, Copy)]
enum Style {
    Class,
    Name,
    Config,
    Note,
}

impl Style {
    fn attributes(self) -> &'static str {
        match self {
            Style::Class => "font-size=\"12\" font-weight=\"bold\" fill=\"#111111\"",
            Style::Name => "font-size=\"10\" fill=\"#444444\"",
            Style::Config => "font-size=\"9\" fill=\"#555555\" font-family=\"monospace\"",
            Style::Note => "font-size=\"9\" fill=\"#8a1c1c\"",
        }
    }

    /// Mean width of a character, in pixels.
    fn advance(self) -> f64 {
        match self {
            Style::Class => 7.6,
            Style::Name => 5.9,
            Style::Config | Style::Note => 5.5,
        }
    }
}

fn size(lines: &[(String, Style)], (inputs, outputs): (usize, usize)) -> (f64, f64) {
    let widest = lines
        .iter()
        .map(|(text, style)| text.chars().count() as f64 * style.advance())
        .fold(50.0, f64::max);
    let ports = inputs.max(outputs) as f64 * 16.0;
    (widest.max(ports) + 16.0, lines.len() as f64 * LINE_HEIGHT + 18.0)
}

/// The kinds of all ports of one side, by element and port.
type Kinds = Vec<Vec<ConnectionKind>>;

fn port_kinds(
    graph: &FlatGraph,
    info: &dyn DrawingInfo,
    ports: &[(usize, usize)],
) -> (Kinds, Kinds) {
    let none = |count: &usize| vec![ConnectionKind::Agnostic; *count];
    let mut inputs: Kinds = ports.iter().map(|(inputs, _)| none(inputs)).collect();
    let mut outputs: Kinds = ports.iter().map(|(_, outputs)| none(outputs)).collect();
    for (i, connection) in graph.connections.iter().enumerate() {
        let kind = info.connection(i);
        outputs[connection.from.element][connection.from.port] = kind;
        inputs[connection.to.element][connection.to.port] = kind;
    }
    (inputs, outputs)
}

fn edge(out: &mut String, from: (f64, f64), to: (f64, f64), route: &Route, kind: ConnectionKind) {
    let mut path = format!("M{:.1} {:.1}", from.0, from.1);
    let (mut x, mut y) = from;
    let end = (to.0, to.1 - 8.0);
    let mut curve = |to: (f64, f64), swing: Option<f64>| {
        let (first, second) = match swing {
            Some(swing) => (y + swing, to.1 + swing),
            None => ((y + to.1) / 2.0, (y + to.1) / 2.0),
        };
        let _ = write!(path, "C{x:.1} {first:.1} {:.1} {second:.1} {:.1} {:.1}", to.0, to.0, to.1);
        (x, y) = to;
    };
    for (i, &(lane, top, bottom)) in route.lanes.iter().enumerate() {
        // An edge that runs down enters a lane at its top, one that runs up at its bottom.
        let (near, far) = if route.back { (bottom, top) } else { (top, bottom) };
        curve((lane, near), (route.back && i == 0).then_some(BACK_EDGE_SWING));
        curve((lane, far), None);
    }
    curve(end, route.back.then_some(-BACK_EDGE_SWING));
    let dash = if kind == ConnectionKind::Pull { " stroke-dasharray=\"5 3\"" } else { "" };
    let _ = writeln!(out, "<path d=\"{path}\" stroke=\"{}\"{dash}/>", kind.color());
}

fn draw_box(
    out: &mut String,
    element: &FlatElement,
    lines: &[(String, Style)],
    element_box: &ElementBox,
    color: &str,
) {
    let (x, y) = (element_box.x - element_box.width / 2.0, element_box.y);
    let full = match element.config.as_str() {
        "" => format!("{} :: {}", element.name, element.class),
        config => format!("{} :: {}({config})", element.name, element.class),
    };
    let _ = writeln!(
        out,
        "<g><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
         rx=\"4\" fill=\"{}\" stroke=\"#333333\"/>",
        escape(&full),
        element_box.width,
        element_box.height,
        escape(color)
    );
    for (i, (text, style)) in lines.iter().enumerate() {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" {}>{}</text>",
            element_box.x,
            y + 19.0 + i as f64 * LINE_HEIGHT,
            style.attributes(),
            escape(text)
        );
    }
    out.push_str("</g>\n");
}

fn port_marks(
    out: &mut String,
    element_box: &ElementBox,
    inputs: &[ConnectionKind],
    outputs: &[ConnectionKind],
) {
    let fill = |kind: ConnectionKind| match kind {
        ConnectionKind::Push => kind.color(),
        ConnectionKind::Pull => "#ffffff",
        ConnectionKind::Agnostic => "#bbbbbb",
    };
    let number = |out: &mut String, port: usize, ports: usize, x: f64, y: f64| {
        if ports > 1 {
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"7\" fill=\"#555555\">{port}</text>"
            );
        }
    };
    for (port, &kind) in inputs.iter().enumerate() {
        let (x, y) = element_box.input(port);
        let _ = writeln!(
            out,
            "<path d=\"M{:.1} {:.1}h9l-4.5 8z\" fill=\"{}\" stroke=\"{}\"/>",
            x - 4.5,
            y - 8.0,
            fill(kind),
            kind.color()
        );
        number(out, port, inputs.len(), x + 5.0, y - 2.0);
    }
    for (port, &kind) in outputs.iter().enumerate() {
        let (x, y) = element_box.output(port);
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\" fill=\"{}\" stroke=\"{}\"/>",
            x - 3.5,
            y - 3.5,
            fill(kind),
            kind.color()
        );
        number(out, port, outputs.len(), x + 5.0, y + 9.0);
    }
}

fn legend(out: &mut String, y: f64) {
    let entries = [
        ("push", ConnectionKind::Push),
        ("pull", ConnectionKind::Pull),
        ("agnostic", ConnectionKind::Agnostic),
    ];
    for (i, (name, kind)) in entries.into_iter().enumerate() {
        let x = i as f64 * 100.0;
        let dash = if kind == ConnectionKind::Pull { " stroke-dasharray=\"5 3\"" } else { "" };
        let _ = writeln!(
            out,
            "<path d=\"M{x} {y:.1}h30\" stroke=\"{}\" stroke-width=\"1.4\"{dash}/>\
             <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"10\" fill=\"#444444\">{name}</text>",
            kind.color(),
            x + 36.0,
            y + 3.5
        );
    }
}

/// Escapes text for XML. Line ends stay.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(c),
            c => push_escaped(&mut out, c),
        }
    }
    out
}
