//! Rules of a configuration that say the same as those of the one before it.

use crate::matcher::Reference;
use crate::rules::{Entry, Rules};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// A rule and the one that goes on for it.
#[derive(Clone, Copy)]
struct Heir {
    before: Reference,
    now: Reference,
}

/// By the places that rules had: who goes on for them.
#[derive(Default)]
pub(crate) struct Heirs(Vec<Option<Heir>>);

impl Heirs {
    /// Of rules that say the same several times, the first goes on for the first.
    pub(crate) fn of(before: &Rules, now: &Rules) -> Heirs {
        let mut all = vec![None; before.slots()];
        if before.is_empty() {
            return Heirs(all);
        }
        let mut by_rule: HashMap<String, VecDeque<&Arc<Entry>>> = HashMap::new();
        for entry in now.entries() {
            by_rule.entry(entry.rule.command()).or_default().push_back(entry);
        }
        for entry in before.entries() {
            let same = by_rule.get_mut(&entry.rule.command()).and_then(VecDeque::pop_front);
            all[entry.slot] =
                same.map(|now| Heir { before: Reference::to(entry), now: Reference::to(now) });
        }
        Heirs(all)
    }

    /// Who goes on for a rule that is remembered.
    pub(crate) fn of_rule(&self, rule: &Reference) -> Option<Reference> {
        let heir = self.0.get(rule.slot as usize).copied().flatten();
        heir.filter(|heir| heir.before == *rule).map(|heir| heir.now)
    }

    /// Places that rules had, and those of who goes on for them.
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        self.0.iter().flatten().map(|heir| (heir.before.slot as usize, heir.now.slot as usize))
    }
}
