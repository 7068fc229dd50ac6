//! Pairs the rules of a reload with the existing equal rules.

use crate::rule::Rule;
use crate::rule_set::Entry;
use std::collections::HashMap;
use std::sync::Arc;

/// For each of `rules` the equal entry of `before`, if there is one. Equal rules are paired in
/// their order, each entry once.
pub(crate) fn reused_entries<'e>(
    before: impl Iterator<Item = &'e Arc<Entry>> + Clone,
    rules: &[Rule],
) -> Vec<Option<Arc<Entry>>> {
    // Most reloads change few rules: compare line by line first.
    let pairs = before.clone().zip(rules);
    let same = pairs.take_while(|(entry, rule)| entry.rule == **rule).count();
    let (head, tail) = rules.split_at(same);
    let mut kept: Vec<_> = before.clone().take(head.len()).cloned().map(Some).collect();
    if tail.is_empty() {
        return kept;
    }
    let rest: Vec<&Arc<Entry>> = before.skip(same).collect();
    let mut by_rule = EntryIndex::new(&rest);
    kept.extend(tail.iter().map(|rule| by_rule.claim(rule).cloned()));
    kept
}

/// Index of the entries by rule; each entry is claimed once.
struct EntryIndex<'e> {
    entries: &'e [&'e Arc<Entry>],
    /// The first unclaimed entry of a rule.
    first: HashMap<&'e Rule, usize>,
    /// By entry: the next one with an equal rule.
    next: Vec<Option<usize>>,
}

impl<'e> EntryIndex<'e> {
    fn new(entries: &'e [&'e Arc<Entry>]) -> EntryIndex<'e> {
        let mut first = HashMap::with_capacity(entries.len());
        let mut next = vec![None; entries.len()];
        for (at, entry) in entries.iter().enumerate().rev() {
            next[at] = first.insert(&entry.rule, at);
        }
        EntryIndex { entries, first, next }
    }

    /// Claims the first entry left that is equal to a rule.
    fn claim(&mut self, rule: &Rule) -> Option<&'e Arc<Entry>> {
        let first = self.first.get_mut(rule)?;
        let at = *first;
        match self.next[at] {
            Some(next) => *first = next,
            None => _ = self.first.remove(rule),
        }
        Some(self.entries[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::command;
    use crate::named_sets::NamedSets;
    use crate::rule_set::RuleSet;
    use proptest::prelude::*;

    fn rules(numbers: &[u8]) -> Vec<Rule> {
        let rule = |n: &u8| crate::language::rule(&format!("all mod ip-ttl {n}"), false);
        numbers.iter().map(|n| rule(n).expect("is a rule")).collect()
    }

    proptest! {
        #[test]
        fn equal_rules_are_paired_in_their_order(
            before in prop::collection::vec(0u8..4, 0..12),
            after in prop::collection::vec(0u8..4, 0..12),
        ) {
            let mut all = RuleSet::new(rules(&before));
            let ids: Vec<u64> = all.entries().map(|entry| entry.id).collect();
            all.load(rules(&after), NamedSets::default());
            let mut wanted: Vec<Option<u64>> = Vec::new();
            for (at, n) in after.iter().enumerate() {
                let nth = after[..at].iter().filter(|it| *it == n).count();
                let same = before.iter().zip(&ids).filter(|(it, _)| *it == n);
                wanted.push(same.map(|(_, id)| *id).nth(nth));
            }
            let kept = |id: u64| Some(id).filter(|id| ids.contains(id));
            let found: Vec<_> = all.entries().map(|entry| kept(entry.id)).collect();
            prop_assert_eq!(found, wanted);
            prop_assert_eq!(all.entries().map(|it| it.rule.clone()).collect::<Vec<_>>(), rules(&after));
            // No two rules have one slot, and none has an identifier that another had.
            let mut slots: Vec<usize> = all.entries().map(|entry| entry.slot).collect();
            slots.sort_unstable();
            slots.dedup();
            prop_assert_eq!(slots.len(), after.len());
            prop_assert!(all.slots() <= before.len() + after.len());
        }
    }

    #[test]
    fn kept_rules_are_counted_as_stateful() {
        let rule = |text: &str| match command(text) {
            Ok(Some(crate::language::Command::Add(rule))) => rule,
            other => panic!("{text}: {other:?}"),
        };
        let of = |lines: &[&str]| lines.iter().map(|line| rule(line)).collect::<Vec<_>>();
        let mut all = RuleSet::new(of(&["add-stateful all accept", "all accept", "all drop"]));
        all.load(
            of(&["all accept", "add-stateful ip-ttl 3 accept", "add-stateful all accept"]),
            NamedSets::default(),
        );
        assert_eq!(all.stateful(), 2);
        // Whether a rule is about connections is part of what it says.
        assert_eq!(all.entries().map(|entry| entry.id).collect::<Vec<_>>(), [2, 4, 1]);
        all.load(of(&["all accept"]), NamedSets::default());
        assert_eq!((all.stateful(), all.slots()), (0, 3));
        all.load(Vec::new(), NamedSets::default());
        assert_eq!((all.slots(), all.last_id()), (0, 4));
    }
}
