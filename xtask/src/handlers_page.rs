//! Generates `docs/handlers.md`: the tables of handlers, from their declarations.

use std::collections::BTreeMap;

use castanet_element::handler::HandlerDoc;
use castanet_runtime::router::{
    ACCOUNT_READS, ACCOUNT_WRITES, COMMON_READS, COMMON_WRITES, GLOBAL_READS, GLOBAL_WRITES,
    MEMORY_READS, MEMORY_WRITES, TASK_READS, TASK_WRITES,
};

use crate::docs::rooms;

/// The page without its tables.
const TEXT: &str = include_str!("../assets/handlers.md");

/// Handlers that many classes have, each with a sentence that is true of all of them.
pub const SHARED: &[(&str, &str)] = &[
    ("count", "Packets since the start or the last reset: made, passed, or as the class says."),
    ("byte_count", "Bytes of the packets that are counted."),
    ("active", "Whether a source makes packets, a puller pulls, or a printer prints."),
    ("drops", "Packets that the element itself has dropped since the last reset."),
    ("reset_counts", "Sets the counts of the element to zero."),
    ("reset", "Begins anew: counts, tables, or the work of a source."),
    ("length", "Packets that a queue has now; of a source, the length of its packets in bytes."),
    ("capacity", "Most packets that a queue keeps, or entries that a table keeps."),
    ("rate", "Packets a second: measured by a counter, the limit of a source or a shaper."),
    ("limit", "Packets that a source makes in all; no limit if negative."),
    ("table", "All entries of a table, one a line."),
    ("add", "Adds an entry to a table."),
    ("clear", "Removes all entries of a table."),
    ("pattern_", "The rule or pattern of this number, from 0."),
    ("src", "The source address that the element writes."),
    ("dst", "The destination address that the element writes."),
    ("config", "The arguments in effect: the rate of a shaper, the output of a switch."),
    ("device", "The device, and how its packets come and go."),
];

/// Classes that a row names.
const NAMED: usize = 3;

/// Returns the page.
pub fn page() -> String {
    TEXT.replace("{{global}}", &table(GLOBAL_READS, GLOBAL_WRITES))
        .replace("{{common}}", &table(COMMON_READS, COMMON_WRITES))
        .replace("{{task}}", &table(TASK_READS, TASK_WRITES))
        .replace("{{account}}", &table(ACCOUNT_READS, ACCOUNT_WRITES))
        .replace("{{memory}}", &table(MEMORY_READS, MEMORY_WRITES))
        .replace("{{shared}}", &shared())
}

/// Returns the rows of handlers in the order of their names.
fn table(reads: &[HandlerDoc], writes: &[HandlerDoc]) -> String {
    let reads = reads.iter().map(|doc| (doc.name, 0, row(doc, "read")));
    let writes = writes.iter().map(|doc| (doc.name, 1, row(doc, "write")));
    let mut rows: Vec<_> = reads.chain(writes).collect();
    rows.sort();
    rows.into_iter().map(|(_, _, row)| row).collect::<Vec<_>>().join("\n")
}

fn row(doc: &HandlerDoc, access: &str) -> String {
    format!("| `{}` | {access} | {} |", doc.name, line(doc.doc))
}

/// A sentence on one line.
fn line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The classes that have a handler of one name.
#[derive(Default)]
struct Sharing {
    reads: bool,
    writes: bool,
    classes: Vec<&'static str>,
}

/// Returns the rows of the handlers that many classes have.
fn shared() -> String {
    let sharing = sharing();
    let row = |&(name, sentence): &(&str, &str)| {
        let it = sharing.get(name)?;
        let access = match (it.reads, it.writes) {
            (true, true) => "both",
            (true, false) => "read",
            _ => "write",
        };
        let names = it.classes.iter().take(NAMED).map(|name| format!("`{name}`"));
        let names = names.collect::<Vec<_>>().join(", ");
        let more = it.classes.len().saturating_sub(NAMED);
        Some(format!("| `{name}` | {access} | {sentence} | {names} and {more} more |"))
    };
    SHARED.iter().filter_map(row).collect::<Vec<_>>().join("\n")
}

/// Returns all handlers of classes by name.
fn sharing() -> BTreeMap<&'static str, Sharing> {
    let mut all: BTreeMap<&str, Sharing> = BTreeMap::new();
    for class in rooms().into_iter().flat_map(|(_, classes)| classes) {
        let reads = (class.reads)().into_iter().map(|doc| (doc, false));
        for (doc, writes) in reads.chain((class.writes)().into_iter().map(|doc| (doc, true))) {
            let it = all.entry(doc.name).or_default();
            it.reads |= !writes;
            it.writes |= writes;
            if !it.classes.contains(&class.spec.class) {
                it.classes.push(class.spec.class);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_of_many_classes_are_listed() {
        for (name, it) in sharing() {
            let listed = SHARED.iter().any(|(other, _)| *other == name);
            assert!(listed || it.classes.len() < 12, "SHARED lacks `{name}`: {:?}", it.classes);
            assert!(!listed || it.classes.len() > NAMED, "few classes have `{name}`");
        }
    }
}
