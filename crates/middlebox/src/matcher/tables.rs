//! Lookup tables of a rule set, shared by all workers.

use super::compile::CompiledRule;
use super::keys;
use super::slots::{INEXACT, PackedRule, RuleSlots};
use crate::match_packet::PacketView;
use crate::rule_set::{Change, Entry, RuleSet};
use castanet_kit::parallel;
use castanet_kit::rules::{Key, MaskStats, Table, WORDS};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// From this number of new rules on, the probes of the table are chosen anew.
const MANY: usize = 100;
/// Number of rules that are compiled at a time.
const COMPILE_CHUNK: usize = 1 << 14;

/// A rule set and its lookup table, immutable while workers read it.
#[derive(Clone, Default)]
pub struct Tables {
    rules: Arc<RuleSet>,
    pub(super) table: Table,
    pub(super) slots: RuleSlots,
    /// Number of keys that test TCP options.
    option_keys: usize,
    /// Whether any key tests TCP options.
    pub(super) with_options: bool,
}

impl Tables {
    /// Builds the tables of a rule set.
    pub fn new(rules: Arc<RuleSet>) -> Tables {
        let mut tables = Tables::default();
        tables.set_rules(rules);
        tables
    }

    /// Returns the rule set.
    pub fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Updates to a rule set: by its change log in microseconds, or else by comparing all rules.
    pub fn set_rules(&mut self, rules: Arc<RuleSet>) {
        match rules.changes_since(&self.rules) {
            Some(changes) => changes.iter().for_each(|change| self.apply_change(change)),
            None => self.rebuild(&rules),
        }
        self.with_options = self.option_keys > 0;
        self.rules = rules;
    }

    fn apply_change(&mut self, change: &Change) {
        match change {
            Change::Added(rank, entry) => self.insert(entry, *rank, &CompiledRule::of(&entry.rule)),
            Change::Removed(entry) => self.remove(entry.slot),
            Change::Moved(rank, entry) => self.slots.set_rank(entry.slot, *rank),
            Change::Renewed(rank, entry) => {
                self.remove(entry.slot);
                self.insert(entry, *rank, &CompiledRule::of(&entry.rule));
            }
        }
    }

    /// Compares all rules with the table.
    fn rebuild(&mut self, rules: &RuleSet) {
        let mut is_used = vec![false; self.slots.slots().max(rules.slots())];
        let mut new = Vec::new();
        for (rank, entry) in rules.ranked() {
            is_used[entry.slot] = true;
            match self.slots.entry(entry.slot as u32) {
                Some(held) if Arc::ptr_eq(held, entry) => self.slots.set_rank(entry.slot, rank),
                _ => new.push((rank, entry)),
            }
        }
        let unused = is_used.iter().enumerate().filter(|(_, is_used)| !**is_used);
        unused.for_each(|(slot, _)| self.remove(slot));
        if new.len() > MANY {
            self.table.defer_probes();
        }
        for some in new.chunks(COMPILE_CHUNK) {
            let compiled = parallel::map(some, MANY, |(_, entry)| CompiledRule::of(&entry.rule));
            for ((rank, entry), compiled) in some.iter().zip(&compiled) {
                self.remove(entry.slot);
                self.insert(entry, *rank, compiled);
            }
        }
        if new.len() > MANY {
            self.table.settle();
        }
    }

    fn insert(&mut self, entry: &Arc<Entry>, rank: u64, compiled: &CompiledRule) {
        let PackedRule(number) = self.slots.insert(entry, rank, compiled);
        for key in &compiled.keys {
            self.option_keys += usize::from(keys::is_of_options(key.mask()));
            self.table.insert(number, key);
        }
    }

    fn remove(&mut self, slot: usize) {
        let Some((PackedRule(number), entry)) = self.slots.remove(slot) else { return };
        for key in &CompiledRule::of(&entry.rule).keys {
            self.option_keys -= usize::from(keys::is_of_options(key.mask()));
            self.table.remove(number, key);
        }
    }

    /// Puts the slots of all rules that match a packet into `found`, in rule order.
    pub(super) fn matching_rules(&self, seen: &PacketView, found: &mut Vec<u32>) {
        let mut key = Key::default();
        keys::fill(&mut key, seen.bytes, seen.headers, self.with_options);
        keys::fill_state(&mut key, seen.ct_info.state);
        found.clear();
        self.table.for_each_match(&key, |rule| found.push(rule));
        self.retain(seen, found);
    }

    /// Replaces the packed rules in `found` by the slots of those that match the packet, in rule
    /// order.
    pub(super) fn retain(&self, seen: &PacketView, found: &mut Vec<u32>) {
        let matches_packet =
            |slot| self.slots.entry(slot).is_some_and(|it| it.rule.matches_packet(seen));
        found.retain_mut(|found| {
            let number = PackedRule(*found);
            *found = number.slot();
            number.actions() & INEXACT == 0 || matches_packet(*found)
        });
        self.slots.sort(found);
        // A rule of a chain may have been found by several paths to it.
        found.dedup();
        found.retain(|&slot| self.slots.entry(slot).is_some_and(|entry| entry.allows(seen)));
    }

    /// Iterates over the masks of the rules.
    pub fn masks(&self) -> impl Iterator<Item = MaskStats> {
        self.table.masks()
    }

    /// Describes the table; `verbose` with the masks and their rules.
    pub fn text(&self, verbose: bool) -> String {
        let (table, count) = (&self.table, self.slots.len());
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

    /// Lists the masks, and under each its rules.
    fn contents(&self) -> Vec<String> {
        let mut rules: BTreeMap<[u64; WORDS], BTreeMap<u64, String>> = BTreeMap::new();
        for (rank, entry) in self.slots.iter() {
            for key in CompiledRule::of(&entry.rule).keys {
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
