//! The page about the language, with tables of what is declared.

use crate::field::{FIELDS, FieldLocation, FieldSpec};
use crate::language::{COMMANDS, TARGETS};
use std::fmt::Write;

/// `docs/middlebox.md`.
pub fn page() -> String {
    let targets = TARGETS.iter().map(|(name, form, doc)| {
        let form = format!("{name} {form}");
        (form.trim_end().to_owned(), *doc)
    });
    let commands = COMMANDS.iter().map(|(form, doc)| ((*form).to_owned(), *doc));
    include_str!("page.md")
        .replace("{{targets}}", &table("target", targets))
        .replace("{{commands}}", &table("command", commands))
        .replace("{{fields}}", &fields())
}

fn table(of: &str, rows: impl Iterator<Item = (String, &'static str)>) -> String {
    let head = format!("| {of} | what it does |\n|---|---|\n");
    let table = rows.fold(head, |mut table, (form, doc)| {
        let _ = writeln!(table, "| `{}` | {doc} |", form.replace('|', "\\|"));
        table
    });
    table.trim_end().to_owned()
}

fn fields() -> String {
    let head =
        "| field | of | bits | conditions | targets | what it is |\n|---|---|---|---|---|---|\n";
    let table = FIELDS.iter().fold(head.to_owned(), |mut table, spec| {
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {} | {} | {} |",
            spec.name,
            spec.layer.word(),
            place(spec),
            conditions(spec),
            targets(spec),
            spec.doc
        );
        table
    });
    table.trim_end().to_owned()
}

/// Renders the location of a field.
fn place(spec: &FieldSpec) -> String {
    match (spec.location, spec.bits()) {
        (FieldLocation::Bits { first, count: 1 }, _) => first.to_string(),
        (FieldLocation::Bits { first, count }, _) => format!("{first}–{}", first + count - 1),
        (_, 0) => "—".into(),
        (_, bits) => format!("{bits} bits"),
    }
}

/// Renders the conditions that a field takes.
fn conditions(spec: &FieldSpec) -> &'static str {
    use crate::field::Kind;
    match spec.kind {
        Kind::Presence => "there or not",
        Kind::Rate => "`<=` `>`",
        Kind::Chain => "`==`",
        _ if spec.is_limit() => "`<` `<=`",
        _ if spec.has_order() => "all",
        _ => "`==` `!=`",
    }
}

/// Renders the targets that take a field.
fn targets(spec: &FieldSpec) -> String {
    let takes = [
        ("mod", spec.modifies()),
        ("add, strip", spec.is_option()),
        ("map", spec.maps),
        ("shuffle", spec.shuffles),
    ];
    let names: Vec<&str> =
        takes.iter().filter(|(_, takes)| *takes).map(|(name, _)| *name).collect();
    names.join(", ")
}
