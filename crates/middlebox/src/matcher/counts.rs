//! What a worker has counted for rules.

use crate::heirs::Heirs;
use crate::listing::Count;
use crate::rules::{Change, Rules};

/// Packets and bytes by the places of rules.
#[derive(Clone, Default)]
pub(crate) struct Counts {
    all: Vec<Count>,
}

impl Counts {
    /// Begins anew for rules that are new where `before` was counted for.
    pub(super) fn follow(&mut self, before: &Rules, rules: &Rules) {
        if !rules.goes_on_from(before) || before.resets != rules.resets {
            // Those of the system are zero already, and touched when they are counted in.
            self.all = vec![Count::default(); rules.slots()];
            return;
        }
        self.all.resize(self.all.len().max(rules.slots()), Count::default());
        match rules.changes_since(before) {
            Some(changes) => changes.iter().for_each(|change| {
                if let Change::Came(_, entry) = change {
                    self.set(entry.slot, Count::default());
                }
            }),
            None => self.follow_all(before, rules),
        }
    }

    /// The same by a look at all rules.
    fn follow_all(&mut self, before: &Rules, rules: &Rules) {
        let mut ids = vec![None; self.all.len()];
        before.entries().for_each(|entry| ids[entry.slot] = Some(entry.id));
        let new = rules.entries().filter(|entry| ids[entry.slot] != Some(entry.id));
        new.for_each(|entry| self.set(entry.slot, Count::default()));
    }

    /// Goes on with what those have counted whose heirs these rules are.
    pub(super) fn adopt(&mut self, before: &Counts, heirs: &Heirs) {
        heirs.places().for_each(|(before_at, at)| self.set(at, before.of(before_at)));
    }

    /// Counts a packet for the rule in a place.
    #[inline]
    pub(super) fn count(&mut self, slot: u32, bytes: usize) {
        if let Some(count) = self.all.get_mut(slot as usize) {
            count.packets += 1;
            count.bytes += bytes as u64;
        }
    }

    /// What was counted for the rule in a place.
    pub(crate) fn of(&self, slot: usize) -> Count {
        self.all.get(slot).copied().unwrap_or_default()
    }

    /// Says what was counted for the rule in a place.
    pub(crate) fn set(&mut self, slot: usize, count: Count) {
        if let Some(place) = self.all.get_mut(slot) {
            *place = count;
        }
    }
}
