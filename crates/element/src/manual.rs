//! The manual: one page an element, written from what the element declares.

use crate::args::ArgKind;
use crate::class::ports::{code, counts, letter};
use crate::class::{Class, Role};
use crate::fate::{FateKind, MAX_OUTPUTS};
use crate::flow::Flow;
use crate::handler::HandlerMetric;
use std::fmt::Write;

/// The first sentence of a class's documentation.
pub fn summary(class: &Class) -> &'static str {
    class.spec.doc.split("\n\n").next().unwrap_or_default()
}

/// The manual page of a class, as Markdown; `related` has the rows of its last section.
pub fn page(class: &Class, related: Vec<String>) -> String {
    let (first, rest) = class.spec.doc.split_once("\n\n").unwrap_or((class.spec.doc, ""));
    let mut page = format!("# {}\n\n{first}\n\n", class.spec.class);
    page += &synopsis(class);
    if !rest.is_empty() {
        _ = writeln!(page, "\n{rest}");
    }
    section(&mut page, "Arguments", arguments(class));
    section(&mut page, "Exits", exits(class));
    let handlers = |list: Vec<crate::handler::HandlerDoc>| {
        list.into_iter().map(|h| format!("`{}`: {}", h.name, line(h.doc))).collect()
    };
    section(&mut page, "Read handlers", handlers((class.reads)()));
    section(&mut page, "Metrics", metrics(class));
    section(&mut page, "Write handlers", handlers((class.writes)()));
    section(&mut page, "Facts", facts(class));
    section(&mut page, "See also", related);
    page
}

/// The names of other classes in the text of a class, as code.
pub fn mentions(class: &Class) -> impl Iterator<Item = &'static str> {
    // Code blocks are outside: their fences have three marks.
    let prose = class.spec.doc.split("```").step_by(2);
    let code = prose.flat_map(|text| text.split('`').skip(1).step_by(2));
    let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric());
    code.filter(is_name).filter(move |word| *word != class.spec.class)
}

/// The arguments as one writes them, and the ports: a block of text.
fn synopsis(class: &Class) -> String {
    let args: Vec<String> = class.args.iter().map(written).collect();
    let args = if args.is_empty() { String::new() } else { format!("({})", args.join(", ")) };
    let ports = match class.role {
        Role::Info | Role::Control => "no packets".to_owned(),
        _ => {
            let counts = counts(class);
            let inputs = side(class, 0, "input", counts.inputs);
            format!("{inputs}; {}", side(class, 1, "output", counts.outputs))
        }
    };
    format!("```text\n{}{args}\n{ports}\n```\n", class.spec.class)
}

/// An argument as one writes it, in brackets if it may be left out.
fn written(arg: &crate::args::ArgSpec) -> String {
    let text = match arg.kind {
        ArgKind::Place => arg.name.to_owned(),
        ArgKind::Rest => format!("{}...", arg.name),
        ArgKind::Keyword => match arg.default {
            Some(value) if !value.is_empty() => format!("{} {value}", arg.name),
            _ => format!("{} {}", arg.name, placeholder(arg.syntax)),
        },
    };
    match arg.default {
        Some(_) => format!("[{text}]"),
        None => text,
    }
}

/// The word for a value in a synopsis.
fn placeholder(syntax: &str) -> &'static str {
    const WORDS: &[(&str, &str)] = &[
        ("number", "number"),
        ("integer", "number"),
        ("true or false", "bool"),
        ("time", "time"),
        ("bandwidth", "bandwidth"),
        ("prefix", "prefix"),
        ("address", "address"),
        ("text", "text"),
    ];
    WORDS.iter().find(|(part, _)| syntax.contains(part)).map_or("value", |(_, word)| word)
}

/// The ports of one side in words: their number, and whether they push or pull.
fn side(class: &Class, side: usize, noun: &str, range: (usize, usize)) -> String {
    let (low, high) = range;
    let count = match high {
        0 => return format!("no {noun}"),
        1 if low == 1 => format!("1 {noun}"),
        MAX_OUTPUTS => format!("{low} or more {noun}s"),
        _ if low == high => format!("{low} {noun}s"),
        _ => format!("{low} to {high} {noun}s"),
    };
    let word = |port: usize| match letter(code(class), side, port) {
        Flow::Push => "push",
        Flow::Pull => "pull",
        Flow::Agnostic => "push or pull",
    };
    let letters = code(class).split('/').nth(side).unwrap_or(code(class)).len();
    let words: Vec<&str> = (0..letters.clamp(1, high)).map(word).collect();
    match words.split_last() {
        Some((others, first)) if first.iter().any(|word| word != others) => {
            let numbered = first.iter().enumerate().map(|(port, word)| format!("{port}: {word}; "));
            format!("{count} ({}others: {others})", numbered.collect::<String>())
        }
        _ => format!("{count} ({})", word(0)),
    }
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
        if !matches!(name.as_str(), "no_frame" | "no_memory" | "loop" | "panic") {
            rows.push(format!("`drops.{name}`: {}", line(doc)));
        }
    }
    rows
}

fn facts(class: &Class) -> Vec<String> {
    let mut rows = Vec::new();
    let range = |(low, high): (usize, usize)| match high {
        _ if low == high => low.to_string(),
        MAX_OUTPUTS => format!("{low} or more"),
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
