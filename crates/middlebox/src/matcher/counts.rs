//! What a worker has counted for rules.

use crate::listing::Count;
use crate::rules::{Change, Rules};

/// Packets and bytes by the places of rules.
#[derive(Default)]
pub(crate) struct Counts {
    all: Vec<Pair>,
}

/// Packets and bytes; as numbers, for which memory need not be written that is zero.
type Pair = [u64; 2];

const NONE: Pair = [0; 2];

impl Counts {
    /// Begins anew for rules that are new where `before` was counted for.
    pub(super) fn follow(&mut self, before: &Rules, rules: &Rules) {
        if !rules.goes_on_from(before) || before.resets != rules.resets {
            // Those of the system are zero already, and touched when they are counted in.
            self.all = vec![NONE; rules.slots()];
            return;
        }
        self.all.resize(self.all.len().max(rules.slots()), NONE);
        match rules.changes_since(before) {
            Some(changes) => changes.iter().for_each(|change| {
                if let Change::Came(_, entry) = change {
                    self.set(entry.slot, Count::default());
                }
            }),
            None => self.follow_all(before, rules),
        }
    }

    /// The same by a look at all rules, if any came.
    fn follow_all(&mut self, before: &Rules, rules: &Rules) {
        let last = before.last_id();
        if rules.last_id() > last {
            let new = rules.entries().filter(|entry| entry.id > last);
            new.for_each(|entry| self.set(entry.slot, Count::default()));
        }
    }

    /// Counts a packet for the rule in a place.
    #[inline]
    pub(super) fn count(&mut self, slot: u32, bytes: usize) {
        if let Some([packets, all]) = self.all.get_mut(slot as usize) {
            *packets += 1;
            *all += bytes as u64;
        }
    }

    /// What was counted for the rule in a place.
    pub(crate) fn of(&self, slot: usize) -> Count {
        let [packets, bytes] = self.all.get(slot).copied().unwrap_or(NONE);
        Count { packets, bytes }
    }

    /// Says what was counted for the rule in a place.
    fn set(&mut self, slot: usize, Count { packets, bytes }: Count) {
        if let Some(place) = self.all.get_mut(slot) {
            *place = [packets, bytes];
        }
    }
}
