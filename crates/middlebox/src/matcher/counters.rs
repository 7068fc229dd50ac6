//! Rule counters of one worker.

use crate::listing::Count;
use crate::rule_set::{Change, RuleSet};

/// Packets, bytes and drops by slot.
#[derive(Default)]
pub(crate) struct RuleCounters {
    all: Vec<Counter>,
    /// Packets that a rule has dropped. They lie apart, so that those that match cost no more.
    drops: Vec<u64>,
}

/// Packets and bytes: integers, so that the allocator can hand out zeroed pages untouched.
type Counter = [u64; 2];

const ZERO: Counter = [0; 2];

impl RuleCounters {
    /// Adapts to another rule set: counters of new rules start at zero.
    pub(super) fn set_rules(&mut self, before: &RuleSet, rules: &RuleSet) {
        if !rules.keeps_slots_of(before) || before.resets != rules.resets {
            // A fresh allocation is zeroed by the system, and its pages are touched at the first
            // count.
            self.all = vec![ZERO; rules.slots()];
            self.drops = vec![0; rules.slots()];
            return;
        }
        let slots = self.all.len().max(rules.slots());
        self.all.resize(slots, ZERO);
        self.drops.resize(slots, 0);
        match rules.changes_since(before) {
            Some(changes) => changes.iter().for_each(|change| {
                if let Change::Added(_, entry) = change {
                    self.set(entry.slot, Count::default());
                }
            }),
            None => self.reset_new(before, rules),
        }
    }

    /// As `set_rules`, by comparing all rules.
    fn reset_new(&mut self, before: &RuleSet, rules: &RuleSet) {
        let last = before.last_id();
        if rules.last_id() > last {
            let new = rules.entries().filter(|entry| entry.id > last);
            new.for_each(|entry| self.set(entry.slot, Count::default()));
        }
    }

    /// Counts a packet for the rule in a slot.
    #[inline]
    pub(super) fn count(&mut self, slot: u32, bytes: usize) {
        if let Some([packets, all]) = self.all.get_mut(slot as usize) {
            *packets += 1;
            *all += bytes as u64;
        }
    }

    /// Counts a packet that the rule in a slot drops.
    #[inline]
    pub(super) fn count_drop(&mut self, slot: u32) {
        if let Some(drops) = self.drops.get_mut(slot as usize) {
            *drops += 1;
        }
    }

    /// Adds packets, bytes and drops to those of a slot.
    pub(super) fn add(&mut self, slot: u32, [packets, bytes, drops]: [u64; 3]) {
        let slot = slot as usize;
        if let (Some(all), Some(own)) = (self.all.get_mut(slot), self.drops.get_mut(slot)) {
            *all = [all[0].saturating_add(packets), all[1].saturating_add(bytes)];
            *own = own.saturating_add(drops);
        }
    }

    /// Returns the counter of a slot.
    pub(crate) fn of(&self, slot: usize) -> Count {
        let [packets, bytes] = self.all.get(slot).copied().unwrap_or(ZERO);
        let drops = self.drops.get(slot).copied().unwrap_or_default();
        Count { packets, bytes, drops }
    }

    /// Sets the counter of a slot.
    fn set(&mut self, slot: usize, Count { packets, bytes, drops }: Count) {
        if let (Some(place), Some(own)) = (self.all.get_mut(slot), self.drops.get_mut(slot)) {
            (*place, *own) = ([packets, bytes], drops);
        }
    }
}
