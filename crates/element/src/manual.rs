//! The manual: one page an element, written from what the element declares.

use crate::args::ArgKind;
use crate::class::ports::{code, counts};
use crate::class::{Class, Role};
use crate::fate::FateKind;
use crate::handler::HandlerMetric;
use std::fmt::Write;

/// The first sentence of a class's documentation.
pub fn summary(class: &Class) -> &'static str {
    class.spec.doc.split("\n\n").next().unwrap_or_default()
}

/// The manual page of a class, as Markdown.
pub fn page(class: &Class) -> String {
    let mut page = format!("# {}\n\n{}\n", class.spec.class, class.spec.doc);
    section(&mut page, "Arguments", arguments(class));
    section(&mut page, "Exits", exits(class));
    let handlers = |list: Vec<crate::handler::HandlerDoc>| {
        list.into_iter().map(|h| format!("`{}`: {}", h.name, line(h.doc))).collect()
    };
    section(&mut page, "Read handlers", handlers((class.reads)()));
    section(&mut page, "Metrics", metrics(class));
    section(&mut page, "Write handlers", handlers((class.writes)()));
    section(&mut page, "Facts", facts(class));
    page
}

fn metrics(class: &Class) -> Vec<String> {
    let row =
        |it: HandlerMetric| format!("`{}`: the handler `{}`", it.metric.full_name(), it.handler);
    (class.metrics)().into_iter().map(row).collect()
}

fn section(page: &mut String, title: &str, rows: Vec<String>) {
    if !rows.is_empty() {
        _ = writeln!(page, "\n## {title}\n");
        rows.iter().for_each(|row| _ = writeln!(page, "* {row}"));
    }
}

/// A doc comment on one line.
fn line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn arguments(class: &Class) -> Vec<String> {
    let row = |arg: &crate::args::ArgSpec| {
        let name = match arg.kind {
            ArgKind::Place => format!("`{}`", arg.name),
            ArgKind::Keyword => format!("keyword `{}`", arg.name),
            ArgKind::Rest => format!("`{}`…", arg.name),
        };
        let default = match arg.default {
            Some("") => "; optional".to_owned(),
            Some(text) => format!("; default `{text}`"),
            None if arg.kind == ArgKind::Rest => String::new(),
            None => "; required".to_owned(),
        };
        let live = if arg.live { "; also a handler" } else { "" };
        format!("{name} ({}{default}{live}): {}", arg.syntax, line(arg.doc))
    };
    class.args.iter().map(row).collect()
}

fn exits(class: &Class) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for (port, fate) in class.outputs().enumerate() {
        let open = match fate.kind {
            FateKind::Optional => ", may stay open",
            _ => "",
        };
        rows.push(format!("output {port} `{}`{open}: {}", fate.name, line(fate.doc)));
    }
    if class.open_outputs {
        rows.push("as many outputs as are connected".to_owned());
    }
    for (_, name, doc) in class.drop_reasons() {
        if !matches!(name.as_str(), "no_frame" | "loop" | "panic") {
            rows.push(format!("`drops.{name}`: {}", line(doc)));
        }
    }
    rows
}

fn facts(class: &Class) -> Vec<String> {
    let mut rows = Vec::new();
    let range = |(low, high): (usize, usize)| match high {
        _ if low == high => low.to_string(),
        crate::fate::MAX_OUTPUTS => format!("{low} or more"),
        _ => format!("{low} to {high}"),
    };
    let ports = counts(class);
    if !matches!(class.role, Role::Info | Role::Control) {
        rows.push(format!(
            "inputs {}, outputs {}, processing `{}`",
            range(ports.inputs),
            range(ports.outputs),
            code(class)
        ));
        rows.push(format!("takes {} packets", class.on));
    }
    if !class.spec.aliases.is_empty() {
        let names: Vec<String> = class.spec.aliases.iter().map(|n| format!("`{n}`")).collect();
        rows.push(format!("also known as {}", names.join(", ")));
    }
    rows.extend(class.spec.room.map(|room| format!("room `{room}`")));
    rows.push(format!("source: `{}`", class.spec.file));
    rows
}
