//! Which rules are about a packet: found in a table, however many there are.

mod compile;
mod keys;
#[cfg(test)]
mod tests;

use crate::headers::Headers;
use crate::holds::Seen;
use crate::rules::{Entry, Rules};
use castanet_kit::rules::{Hit, Key, Mask, Table, WORDS};
use compile::Compiled;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A rule in the table.
#[derive(Debug)]
struct Held {
    entry: Arc<Entry>,
    /// Whether whatever the table finds is what the rule is about.
    is_exact: bool,
    /// Its position among the rules.
    position: u32,
}

/// With so many new rules at once it is worth it to choose the table's probes anew.
const MANY: usize = 100;

/// Finds the rules that are about packets. The same as asking each rule
/// ([`Rule::holds`](crate::rule::Rule::holds)), for many rules and a burst of packets.
#[derive(Default)]
pub struct Matcher {
    table: Table,
    /// By the rules' places.
    held: Vec<Option<Held>>,
    keys: Vec<Key>,
    hits: Vec<Hit>,
    /// Where the hits of each packet begin; one more at the end.
    firsts: Vec<u32>,
}

impl Matcher {
    /// Learns the rules as they are now, if `before` is what it knows. One that came
    /// behind those is a matter of microseconds; else it looks at all.
    pub fn follow(&mut self, before: &Rules, rules: &Rules) {
        let is_next = rules.is_akin(before) && rules.version() == before.version() + 1;
        if let Some(entry) = rules.added().filter(|_| is_next) {
            self.put(entry, rules.entries().len() - 1);
            return;
        }
        let slots = rules.slots().max(self.held.len());
        self.held.resize_with(slots, || None);
        for slot in 0..slots {
            let now = rules.in_slot(slot, u64::MAX);
            let is_same = |held: &Held| now.is_some_and(|now| Arc::ptr_eq(now, &held.entry));
            if self.held[slot].as_ref().is_some_and(|held| !is_same(held)) {
                self.take(slot);
            }
        }
        let mut new = 0;
        for (position, entry) in rules.entries().iter().enumerate() {
            match &mut self.held[entry.slot] {
                Some(held) => held.position = position as u32,
                None => {
                    self.put(entry, position);
                    new += 1;
                }
            }
        }
        if new > MANY {
            self.table.settle();
        }
    }

    fn put(&mut self, entry: &Arc<Entry>, position: usize) {
        let compiled = Compiled::of(&entry.rule);
        for key in &compiled.keys {
            self.table.insert(entry.slot as u32, key);
        }
        if self.held.len() <= entry.slot {
            self.held.resize_with(entry.slot + 1, || None);
        }
        let (entry, is_exact) = (entry.clone(), compiled.is_exact);
        let slot = entry.slot;
        self.held[slot] = Some(Held { entry, is_exact, position: position as u32 });
    }

    fn take(&mut self, slot: usize) {
        if let Some(held) = self.held[slot].take() {
            for key in &Compiled::of(&held.entry.rule).keys {
                self.table.remove(slot as u32, key);
            }
        }
    }

    /// The masks of the rules.
    pub fn masks(&self) -> impl Iterator<Item = Mask> {
        self.table.masks()
    }

    /// The table that rules are found by; `verbose` with its masks and their rules.
    pub fn tables(&self, verbose: bool) -> String {
        let (table, count) = (&self.table, self.held.iter().flatten().count());
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
        let mut rules: BTreeMap<[u64; WORDS], BTreeMap<u32, String>> = BTreeMap::new();
        for Held { entry, position, .. } in self.held.iter().flatten() {
            for key in Compiled::of(&entry.rule).keys {
                let line = || format!("  id{} {}\n", entry.id, entry.rule);
                let of_mask = rules.entry(key.mask().0).or_default();
                of_mask.entry(*position).or_insert_with(line);
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

    /// Begins a burst: its packets come in order, by [`Matcher::ask`].
    pub fn begin(&mut self) {
        self.keys.clear();
    }

    /// The next packet of the burst; one that no rule is about comes without headers.
    #[inline]
    pub fn ask(&mut self, bytes: &[u8], headers: Option<&Headers>) {
        self.keys.push(headers.map_or(Key::default(), |headers| keys::key(bytes, headers)));
    }

    /// Looks all packets of the burst up.
    pub fn look(&mut self) {
        self.table.find_all(&self.keys, &mut self.hits);
        self.firsts.clear();
        let mut at = 0;
        for key in 0..=self.keys.len() as u32 {
            while self.hits.get(at).is_some_and(|hit| hit.key < key) {
                at += 1;
            }
            self.firsts.push(at as u32);
        }
    }

    /// Puts the positions of all rules that are about a packet of the burst into `found`,
    /// in order.
    #[inline]
    pub fn matching(&self, number: usize, seen: &Seen, found: &mut Vec<u32>) {
        found.clear();
        let firsts = self.firsts.get(number..number + 2).unwrap_or(&[0, 0]);
        for hit in &self.hits[firsts[0] as usize..firsts[1] as usize] {
            let Some(Some(held)) = self.held.get(hit.rule as usize) else { continue };
            if held.is_exact || held.entry.rule.holds(seen) {
                found.push(held.position);
            }
        }
        if found.len() > 1 {
            found.sort_unstable();
        }
    }
}
