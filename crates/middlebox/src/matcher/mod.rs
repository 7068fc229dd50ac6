//! Which rules are about a packet.

mod key;
#[cfg(test)]
mod tests;

use crate::holds::Seen;
use crate::rules::Entry;
use castanet_kit::rules::{Hit, Table};
use std::fmt::Write;
use std::sync::Arc;

/// So few rules are looked at one by one.
const FEW: usize = 8;

/// Finds the rules that are about a packet. Whoever asks knows nothing of how they are
/// found. What a rule says that fits into a key finds it in a table; the rest of it is
/// looked at as [`Rule::holds`](crate::rule::Rule::holds) does, which alone would
/// give the same answers.
#[derive(Default)]
pub struct Matcher {
    entries: Vec<Arc<Entry>>,
    table: Option<Table>,
}

/// What was found, with room to find it in.
#[derive(Default)]
pub struct Matches {
    hits: Vec<Hit>,
    /// The positions of the rules, in order.
    pub rules: Vec<u32>,
}

impl Matcher {
    /// For these rules, in their order.
    pub fn new(entries: &[Arc<Entry>]) -> Matcher {
        Matcher::with_few(entries, FEW)
    }

    /// The same, where so few rules are looked at one by one.
    fn with_few(entries: &[Arc<Entry>], few: usize) -> Matcher {
        let table = (entries.len() > few).then(|| {
            let mut table = Table::new();
            for (at, entry) in entries.iter().enumerate() {
                table.insert(at as u32, &key::of_rule(&entry.rule));
            }
            table.settle();
            table
        });
        Matcher { entries: entries.to_vec(), table }
    }

    /// The tables that rules are found by; `verbose` with what is in them: rules of a list, masks of a table.
    pub fn tables(&self, verbose: bool) -> String {
        let count = self.entries.len();
        let Some(table) = &self.table else {
            let head = format!("list of {count} rules, looked at one by one\n");
            let lines = self.entries.iter().filter(|_| verbose);
            return lines.fold(head, |text, it| text + &format!("id{} {}\n", it.id, it.rule));
        };
        let masks: Vec<_> = table.masks().collect();
        let mut text = format!(
            "table of {count} rules, {} keys, {} masks, {} probes, {} bytes\n",
            table.len(),
            masks.len(),
            table.probes(),
            table.memory()
        );
        if verbose {
            let mut lines: Vec<String> = Vec::new();
            for mask in masks {
                let words: Vec<String> = mask.mask.0.iter().map(|it| format!("{it:x}")).collect();
                lines.push(format!("mask {} keys {}\n", words.join(" "), mask.values));
            }
            lines.sort();
            lines.iter().for_each(|line| _ = text.write_str(line));
        }
        text
    }

    /// Finds all rules that are about a packet.
    #[inline]
    pub fn matching(&self, seen: &Seen, found: &mut Matches) {
        found.rules.clear();
        let holds = |at: u32| self.entries[at as usize].rule.holds(seen);
        let Some(table) = &self.table else {
            found.rules.extend((0..self.entries.len() as u32).filter(|&at| holds(at)));
            return;
        };
        table.find_all(&[key::of_packet(seen)], &mut found.hits);
        found.rules.extend(found.hits.iter().map(|hit| hit.rule).filter(|&at| holds(at)));
        found.rules.sort_unstable();
    }
}
