//! The list of rules with their counters, as a table and as JSON.

use crate::analysis::warnings_of_all;
use crate::field::{FieldLocation, Layer};
use crate::rule::{Predicate, Rule};
use crate::rule_set::{Entry, RuleSet};
use crate::value::{Condition, Value};
use std::fmt::Write;

/// Counter of a rule.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Count {
    /// Packets.
    pub(crate) packets: u64,
    /// Bytes of these.
    pub(crate) bytes: u64,
    /// Packets that the rule has dropped; of several rules that drop a packet the first one counts.
    pub(crate) drops: u64,
}

/// The layers that a rule's matches want, lower and upper.
fn layers(rule: &Rule) -> (&'static str, &'static str) {
    let wanted = |layers: &[Layer]| {
        let mut fields = rule.matches.iter().map(|it| it.field.spec().layer);
        fields.find(|layer| layers.contains(layer)).map_or("any", Layer::word)
    };
    let lower = match wanted(&[Layer::Ip4, Layer::Ip6]) {
        "any" => version(rule),
        lower => lower,
    };
    let lower = match (lower, wanted(&[Layer::Icmp, Layer::Icmp6])) {
        ("any", "icmp") => "ip4",
        ("any", "icmp6") => "ip6",
        _ => lower,
    };
    (lower, wanted(&[Layer::Icmp, Layer::Icmp6, Layer::Udp, Layer::Tcp]))
}

/// Returns the version that `net-proto` requires.
fn version(rule: &Rule) -> &'static str {
    let said = rule.matches.iter().find(|it| it.field.spec().location == FieldLocation::Version);
    match said.and_then(|it| Some((it.negated, it.test.as_ref()?))) {
        Some((false, (Condition::Equal, Value::Number(4)))) => "ip4",
        Some((false, (Condition::Equal, Value::Number(6)))) => "ip6",
        _ => "any",
    }
}

/// Renders the interfaces that a rule requires.
fn interface(rule: &Rule, place: FieldLocation) -> String {
    let about = |it: &&Predicate| it.field.spec().location == place;
    let names = rule.matches.iter().filter(about).filter_map(|it| match &it.test {
        Some((condition, Value::Name(name))) => {
            let not = it.negated != (*condition == Condition::Unequal);
            Some(format!("{}{name}", if not { "!" } else { "" }))
        }
        _ => None,
    });
    match names.collect::<Vec<_>>() {
        names if names.is_empty() => "any".into(),
        names => names.join(","),
    }
}

/// Words with blanks between them.
fn joined<T: ToString>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// One row: everything but the counts.
fn row(at: usize, entry: &Entry) -> [String; 9] {
    let (l3, l4) = layers(&entry.rule);
    [
        (at + 1).to_string(),
        format!("id{}", entry.id),
        l3.into(),
        l4.into(),
        interface(&entry.rule, FieldLocation::In),
        interface(&entry.rule, FieldLocation::Out),
        if entry.rule.stateful { "yes" } else { "no" }.into(),
        joined(&entry.rule.matches),
        joined(&entry.rule.targets),
    ]
}

const HEAD: [&str; 13] = [
    "rule", "id", "l3", "l4", "in", "out", "stateful", "matches", "targets", "packets", "bytes",
    "drops", "comment",
];

/// The list as a table.
pub(crate) fn text(rules: &RuleSet, counts: &[Count]) -> String {
    let mut rows: Vec<[String; 13]> = vec![HEAD.map(str::to_owned)];
    for (at, entry) in rules.entries().enumerate() {
        let count = counts.get(at).copied().unwrap_or_default();
        let [a, b, c, d, e, f, g, h, i] = row(at, entry);
        let [j, k, l] = [count.packets, count.bytes, count.drops].map(|it| it.to_string());
        let comment = entry.rule.comment.beside().to_owned();
        rows.push([a, b, c, d, e, f, g, h, i, j, k, l, comment]);
    }
    if rows.iter().skip(1).all(|row| row[12].is_empty()) {
        rows[0][12].clear();
    }
    let widths: Vec<usize> = (0..HEAD.len())
        .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// The list as JSON.
pub(crate) fn json(rules: &RuleSet, counts: &[Count]) -> String {
    let mut text = String::from("[");
    let all = || rules.entries().map(|entry| &entry.rule);
    let mut warnings = warnings_of_all(all(), usize::MAX).into_iter().peekable();
    for (at, entry) in rules.entries().enumerate() {
        let count = counts.get(at).copied().unwrap_or_default();
        let [_, _, l3, l4, input, output, ..] = row(at, entry);
        let own = std::iter::from_fn(|| warnings.next_if(|(of, _)| *of == at));
        let own: Vec<String> = own.map(|(_, remark)| remark.line(&entry.rule)).collect();
        let _ = write!(
            text,
            "{}\n  {{\"rule\": {}, \"id\": {}, \"l3\": \"{l3}\", \"l4\": \"{l4}\", \
             \"in\": {}, \"out\": {}, \"stateful\": {}, \"matches\": [{}], \
             \"targets\": [{}], \"packets\": {}, \"bytes\": {}, \"drops\": {}, \
             \"comment\": {}, \"warnings\": [{}]}}",
            if at == 0 { "" } else { "," },
            at + 1,
            entry.id,
            quoted(&input),
            quoted(&output),
            entry.rule.stateful,
            all_quoted(&entry.rule.matches),
            all_quoted(&entry.rule.targets),
            count.packets,
            count.bytes,
            count.drops,
            quoted(entry.rule.comment.beside()),
            all_quoted(&own),
        );
    }
    text + "\n]\n"
}

fn all_quoted<T: ToString>(all: &[T]) -> String {
    all.iter().map(|it| quoted(&it.to_string())).collect::<Vec<_>>().join(", ")
}

/// A text as JSON has it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
