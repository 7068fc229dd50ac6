//! The tables that rules are found in, which all workers share.

use super::compile::Compiled;
use super::keys;
use super::places::{Number, Places, VAGUE};
use crate::holds::Seen;
use crate::rules::{Change, Entry, Rules};
use castanet_kit::parallel;
use castanet_kit::rules::{Key, MaskStats, Table, WORDS};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// With so many new rules at once it is worth it to choose the table's probes anew.
const MANY: usize = 100;
/// So many new rules are compiled before the first of them is put into the table.
const ROUND: usize = 1 << 14;

/// Rules, and where they are found. Nobody changes them while a worker looks.
#[derive(Clone, Default)]
pub struct Tables {
    rules: Arc<Rules>,
    pub(super) table: Table,
    pub(super) places: Places,
    /// Keys that say something of TCP options.
    of_options: usize,
    /// Whether there are any.
    pub(super) with_options: bool,
}

impl Tables {
    /// Those of some rules.
    pub fn of(rules: Arc<Rules>) -> Tables {
        let mut tables = Tables::default();
        tables.follow(rules);
        tables
    }

    /// The rules.
    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// Learns the rules as they are now. What a few commands have changed is a matter of
    /// microseconds; else it looks at all.
    pub fn follow(&mut self, rules: Arc<Rules>) {
        match rules.changes_since(&self.rules) {
            Some(changes) => changes.iter().for_each(|change| self.change(change)),
            None => self.learn(&rules),
        }
        self.with_options = self.of_options > 0;
        self.rules = rules;
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Came(rank, entry) => self.put(entry, *rank, &Compiled::of(&entry.rule)),
            Change::Went(entry) => self.take(entry.slot),
            Change::Moved(rank, entry) => self.places.rank(entry.slot, *rank),
        }
    }

    /// Looks at all rules.
    fn learn(&mut self, rules: &Rules) {
        let mut is_used = vec![false; self.places.slots().max(rules.slots())];
        let mut new = Vec::new();
        for (rank, entry) in rules.ranked() {
            is_used[entry.slot] = true;
            match self.places.entry(entry.slot as u32) {
                Some(held) if Arc::ptr_eq(held, entry) => self.places.rank(entry.slot, rank),
                _ => new.push((rank, entry)),
            }
        }
        let unused = is_used.iter().enumerate().filter(|(_, is_used)| !**is_used);
        unused.for_each(|(slot, _)| self.take(slot));
        if new.len() > MANY {
            self.table.defer_probes();
        }
        for some in new.chunks(ROUND) {
            let compiled = parallel::map(some, MANY, |(_, entry)| Compiled::of(&entry.rule));
            for ((rank, entry), compiled) in some.iter().zip(&compiled) {
                self.take(entry.slot);
                self.put(entry, *rank, compiled);
            }
        }
        if new.len() > MANY {
            self.table.settle();
        }
    }

    fn put(&mut self, entry: &Arc<Entry>, rank: u64, compiled: &Compiled) {
        let Number(number) = self.places.put(entry, rank, compiled);
        for key in &compiled.keys {
            self.of_options += usize::from(keys::is_of_options(key.mask()));
            self.table.insert(number, key);
        }
    }

    fn take(&mut self, slot: usize) {
        let Some((Number(number), entry)) = self.places.take(slot) else { return };
        for key in &Compiled::of(&entry.rule).keys {
            self.of_options -= usize::from(keys::is_of_options(key.mask()));
            self.table.remove(number, key);
        }
    }

    /// Puts the places of all rules that are about a packet into `found`, in the order of the
    /// rules.
    pub(super) fn matching(&self, seen: &Seen, found: &mut Vec<u32>) {
        let mut key = Key::default();
        keys::fill(&mut key, seen.bytes, seen.headers, self.with_options);
        found.clear();
        self.table.for_each_match(&key, |rule| found.push(rule));
        self.retain(seen, found);
    }

    /// Leaves of the numbers of rules that were found the places of those that are about the
    /// packet, in order.
    pub(super) fn retain(&self, seen: &Seen, found: &mut Vec<u32>) {
        let holds = |slot| self.places.entry(slot).is_some_and(|it| it.rule.holds(seen));
        found.retain_mut(|found| {
            let number = Number(*found);
            *found = number.slot();
            number.does() & VAGUE == 0 || holds(*found)
        });
        self.places.sort(found);
    }

    /// The masks of the rules.
    pub fn masks(&self) -> impl Iterator<Item = MaskStats> {
        self.table.masks()
    }

    /// What there is of it, in words; `verbose` with the masks and their rules.
    pub fn text(&self, verbose: bool) -> String {
        let (table, count) = (&self.table, self.places.len());
        let mut text = format!(
            "table of {count} rules, {} keys, {} masks, {} probes, {} bytes\n",
            table.len(),
            table.masks().count(),
            table.probes(),
            table.memory()
        );
        if verbose {
            self.contents().iter().for_each(|line| text.push_str(line));
        }
        text
    }

    /// The masks, and under each the rules that have keys of it.
    fn contents(&self) -> Vec<String> {
        let mut rules: BTreeMap<[u64; WORDS], BTreeMap<u64, String>> = BTreeMap::new();
        for (rank, entry) in self.places.iter() {
            for key in Compiled::of(&entry.rule).keys {
                let line = || format!("  id{} {}\n", entry.id, entry.rule);
                let of_mask = rules.entry(key.mask().0).or_default();
                of_mask.entry(rank).or_insert_with(line);
            }
        }
        let counts: HashMap<Key, usize> =
            self.table.masks().map(|mask| (mask.mask, mask.values)).collect();
        let lines = rules.into_iter().flat_map(|(mask, rules)| {
            let words: Vec<String> = mask.iter().map(|it| format!("{it:x}")).collect();
            let keys = counts.get(&Key(mask)).copied().unwrap_or_default();
            let head = format!("mask {} keys {keys}\n", words.join(" "));
            std::iter::once(head).chain(rules.into_values())
        });
        lines.collect()
    }
}
