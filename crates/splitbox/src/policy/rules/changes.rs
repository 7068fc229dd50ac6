//! Changes of rules as stages: the last rule that sets a bit wins, and no match comes behind an action
//! that changes what it tests.

use super::{PolicyError, is_excess, without_shadowed};
use crate::bits::{Bits, HEADER_BITS, Ternary};
use crate::policy::stage::{Effect, Entry};
use std::collections::BTreeMap;
use std::ops::Range;

/// A change to packets of one address family.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The packets: those that meet one of these.
    pub(super) conditions: Vec<Ternary>,
    /// The bits that are set.
    pub(super) action: Ternary,
    /// The place in the text.
    pub(super) range: Range<usize>,
}

/// A list of which the first match decides about some bits.
#[derive(Clone, Debug, Default)]
struct List {
    entries: Vec<ListEntry>,
}

#[derive(Clone, Debug)]
struct ListEntry {
    condition: Ternary,
    action: Ternary,
    range: Range<usize>,
}

impl List {
    fn tested(&self) -> Bits {
        self.entries.iter().fold(Bits::ZERO, |bits, it| bits | it.condition.projection())
    }

    fn changed(&self) -> Bits {
        self.entries.iter().fold(Bits::ZERO, |bits, it| bits | it.action.projection())
    }

    fn into_entries(self) -> Vec<Entry> {
        let entry = |it: ListEntry| Entry {
            condition: it.condition,
            effect: Effect::Set(it.action, 0),
            range: it.range,
        };
        without_shadowed(self.entries.into_iter().map(entry).collect())
    }
}

/// The stages of changes that are in the order of their rules, without their targets.
///
/// # Errors
/// Changes test what each other change, and would need too many matches.
pub(super) fn lists(changes: &[Change]) -> Result<Vec<Vec<Entry>>, Vec<PolicyError>> {
    let ordered = ordered(lists_of_bits(changes));
    let merged: Result<Vec<List>, PolicyError> = ordered.into_iter().map(product).collect();
    Ok(merged.map_err(|error| vec![error])?.into_iter().map(List::into_entries).collect())
}

/// Changes by number, the last one first, and the bits that they set.
type Group = (Vec<usize>, Bits);

/// One list for all bits that the same changes set, or changes for the same packets.
fn lists_of_bits(changes: &[Change]) -> Vec<List> {
    let mut by_changes: BTreeMap<Vec<usize>, Bits> = BTreeMap::new();
    for bit in 0..HEADER_BITS {
        let sets = |change: &Change| change.action.projection().get(bit);
        let own = changes.iter().enumerate().filter(|(_, change)| sets(change));
        // The last one wins.
        let own: Vec<usize> = own.map(|(at, _)| at).rev().collect();
        if !own.is_empty() {
            by_changes.entry(own).or_insert(Bits::ZERO).set(bit);
        }
    }
    let mut by_packets: BTreeMap<Vec<&[Ternary]>, Vec<Group>> = BTreeMap::new();
    for (own, bits) in by_changes {
        let packets = own.iter().map(|&at| &changes[at].conditions[..]).collect();
        by_packets.entry(packets).or_default().push((own, bits));
    }
    let list = |groups: Vec<Group>| {
        let count = groups.first().map_or(0, |group| group.0.len());
        let entries = (0..count).flat_map(|position| {
            let change = |group: &Group| &changes[group.0[position]];
            let action = groups.iter().fold(Ternary::ANY, |all, group| {
                let own = change(group).action;
                let own = Ternary::new(own.value(), own.projection() & group.1);
                all.and(&own).unwrap_or(all)
            });
            let Change { conditions, range, .. } = change(&groups[0]);
            conditions.iter().map(move |&condition| ListEntry {
                condition,
                action,
                range: range.clone(),
            })
        });
        List { entries: entries.collect() }
    };
    by_packets.into_values().map(list).collect()
}

/// The lists in an order in which none tests what an earlier one changes; lists between which there is
/// no such order are in one group.
fn ordered(lists: Vec<List>) -> Vec<Vec<List>> {
    let bits: Vec<(Bits, Bits)> = lists.iter().map(|it| (it.tested(), it.changed())).collect();
    let count = lists.len();
    // Whether a list must come before another, perhaps through further ones.
    let mut is_before = vec![vec![false; count]; count];
    for (a, row) in is_before.iter_mut().enumerate() {
        for (b, is_before) in row.iter_mut().enumerate() {
            *is_before = a != b && bits[a].0.overlaps(&bits[b].1);
        }
    }
    for through in 0..count {
        let further = is_before[through].clone();
        for row in is_before.iter_mut().filter(|row| row[through]) {
            row.iter_mut().zip(&further).for_each(|(it, further)| *it |= *further);
        }
    }
    let is_cyclic = |a: usize, b: usize| is_before[a][b] && is_before[b][a];
    let mut groups: Vec<(usize, Vec<List>)> = Vec::new();
    for (at, list) in lists.into_iter().enumerate() {
        match groups.iter_mut().find(|(first, _)| is_cyclic(*first, at)) {
            Some((_, group)) => group.push(list),
            None => groups.push((at, vec![list])),
        }
    }
    // Fewer lists come before an earlier one, as the relation is transitive.
    groups.sort_by_key(|(first, _)| {
        let before = |it: &usize| is_before[*it][*first] && !is_cyclic(*it, *first);
        (0..count).filter(before).count()
    });
    groups.into_iter().map(|(_, group)| group).collect()
}

/// One list that does what all lists of a group do: its matches are those of each combination.
fn product(group: Vec<List>) -> Result<List, PolicyError> {
    let mut lists = group.into_iter();
    let mut all = lists.next().unwrap_or_default();
    for list in lists {
        let none = |range: Range<usize>| ListEntry {
            condition: Ternary::ANY,
            action: Ternary::ANY,
            range,
        };
        let last = all.entries.last().map(|it| it.range.clone()).unwrap_or_default();
        let mut entries: Vec<ListEntry> = Vec::new();
        for own in all.entries.iter().chain([&none(last)]) {
            for other in list.entries.iter().chain([&none(own.range.clone())]) {
                let Some(condition) = own.condition.and(&other.condition) else { continue };
                let Some(action) = own.action.and(&other.action) else { continue };
                let range = if own.action == Ternary::ANY { &other.range } else { &own.range };
                entries.push(ListEntry { condition, action, range: range.clone() });
            }
            if is_excess(entries.len()) {
                let message = "rules from here on change what each other test, and would need too \
                               many matches";
                return Err(PolicyError::new(own.range.clone(), message)
                    .help("let rules that set different fields test other fields than those"));
            }
        }
        // The last one is that of none of both.
        entries.pop();
        let mut left = entries.iter().enumerate().map(|(at, it)| (it.condition, at)).collect();
        crate::policy::stage::remove_shadowed(&mut left);
        all.entries = left.into_iter().map(|(_, at)| entries[at].clone()).collect();
    }
    Ok(all)
}
