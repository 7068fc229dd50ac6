//! The rules as a worker knows them, each with its counters.

use super::compile::Compiled;
use crate::listing::Count;
use crate::rewrite::Plan;
use crate::rule::Chance;
use crate::rules::Entry;
use std::sync::Arc;

/// A rule accepts.
pub(crate) const ACCEPTS: u8 = 1;
/// A rule drops, whatever chance says.
pub(crate) const DROPS: u8 = 2;
/// A rule changes packets, or leaves something to chance.
pub(crate) const CHANGES: u8 = 4;
/// A rule is about connections.
pub(crate) const STATEFUL: u8 = 8;
/// A rule may not be about the packet at all: it has to be asked.
pub(crate) const VAGUE: u8 = 16;

/// There is no rule.
const GONE: u8 = 32;

/// What a rule does, in short.
fn does(entry: &Entry, is_exact: bool) -> u8 {
    let Plan { drop, accept, hops, fields, turns, options } = &entry.plan;
    let drops = drop.map(|chance| if chance == Chance::ALWAYS { DROPS } else { CHANGES });
    // What becomes of a connection's ends is kept with the connection.
    let turns = !turns.is_empty() && !entry.rule.stateful;
    let changes = turns || !(hops.is_empty() && fields.is_empty() && options.is_empty());
    drops.unwrap_or_default()
        | if *accept { ACCEPTS } else { 0 }
        | if changes { CHANGES } else { 0 }
        | if entry.rule.stateful { STATEFUL } else { 0 }
        | if is_exact { 0 } else { VAGUE }
}

/// What most packets need of a rule: half a line of the cache.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Line {
    count: Count,
    rank: u64,
    /// Whose place it is.
    id: u32,
    does: u8,
}

const _: () = assert!(size_of::<Line>() == 32);

/// A place that nobody has had.
const EMPTY: Line = Line { count: Count { packets: 0, bytes: 0 }, rank: 0, id: 0, does: GONE };

/// A rule in its place, for all workers the same; another one there later is another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Reference {
    pub(crate) slot: u32,
    /// Of its identifier as much as tells it from others in this place.
    id: u32,
}

impl Reference {
    /// The rule as something to be remembered.
    pub(crate) fn to(entry: &Entry) -> Reference {
        Reference { slot: entry.slot as u32, id: entry.id as u32 }
    }

    /// Whether it came after the rule that has this identifier.
    pub(crate) fn is_behind(self, id: u64) -> bool {
        // Identifiers may have begun anew in between.
        self.id.wrapping_sub(id as u32) as i32 > 0
    }
}

/// The rules by their places.
#[derive(Clone, Default)]
pub(crate) struct Places {
    lines: Vec<Line>,
    entries: Vec<Option<Arc<Entry>>>,
}

impl Places {
    /// How many rules there are.
    pub(super) fn len(&self) -> usize {
        self.entries.iter().flatten().count()
    }

    /// The rules with their ranks.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Arc<Entry>)> {
        let all = self.lines.iter().zip(&self.entries);
        all.filter_map(|(line, entry)| Some((line.rank, entry.as_ref()?)))
    }

    /// How many places there are.
    pub(super) fn slots(&self) -> usize {
        self.lines.len()
    }

    /// Makes room.
    pub(super) fn grow(&mut self, slots: usize) {
        if self.lines.len() < slots {
            self.lines.resize(slots, EMPTY);
            self.entries.resize(slots, None);
        }
    }

    /// Puts a rule in its place, which nobody has.
    pub(super) fn put(&mut self, entry: &Arc<Entry>, rank: u64, compiled: &Compiled) {
        self.grow(entry.slot + 1);
        let line = &mut self.lines[entry.slot];
        let (id, does) = (Reference::to(entry).id, does(entry, compiled.is_exact));
        *line = Line { count: Count::default(), rank, id, does };
        self.entries[entry.slot] = Some(entry.clone());
    }

    /// Takes away the rule in a place.
    pub(super) fn take(&mut self, slot: usize) -> Option<Arc<Entry>> {
        let entry = self.entries.get_mut(slot)?.take()?;
        self.lines[slot].does = GONE;
        Some(entry)
    }

    /// Says where among the others the rule in a place is.
    pub(super) fn rank(&mut self, slot: usize, rank: u64) {
        self.lines[slot].rank = rank;
    }

    /// The rule in a place.
    #[inline]
    pub(crate) fn entry(&self, slot: u32) -> Option<&Arc<Entry>> {
        self.entries.get(slot as usize)?.as_ref()
    }

    /// The rule that is remembered, if it is still there.
    #[inline]
    pub(crate) fn of(&self, reference: Reference) -> Option<&Arc<Entry>> {
        let line = self.lines.get(reference.slot as usize)?;
        self.entry(reference.slot).filter(|_| line.id == reference.id)
    }

    /// Those of some rules that are still there, with their places.
    #[inline]
    pub(crate) fn still_there<'a>(
        &'a self,
        rules: &'a [Reference],
    ) -> impl Iterator<Item = (u32, &'a Arc<Entry>)> + Clone + 'a {
        rules.iter().filter_map(|&it| Some((it.slot, self.of(it)?)))
    }

    /// What the rule in a place does, in short.
    #[inline]
    pub(super) fn does(&self, slot: u32) -> u8 {
        self.lines.get(slot as usize).map_or(VAGUE, |line| line.does)
    }

    /// What the rule does that is remembered, if it is still there.
    #[inline]
    pub(crate) fn does_of(&self, reference: Reference) -> Option<u8> {
        let line = self.lines.get(reference.slot as usize)?;
        (line.id == reference.id && line.does & GONE == 0).then_some(line.does)
    }

    /// Puts rules in their order.
    #[inline]
    pub(crate) fn sort(&self, slots: &mut [u32]) {
        if slots.len() > 1 {
            slots.sort_unstable_by_key(|&slot| self.lines.get(slot as usize).map(|it| it.rank));
        }
    }

    /// Counts a packet for the rule in a place.
    #[inline]
    pub(crate) fn count(&mut self, slot: u32, bytes: usize) {
        if let Some(line) = self.lines.get_mut(slot as usize) {
            line.count.packets += 1;
            line.count.bytes += bytes as u64;
        }
    }

    /// What was counted for the rule in a place.
    pub(crate) fn counted(&self, slot: usize) -> Count {
        self.lines.get(slot).map_or(Count::default(), |line| line.count)
    }

    /// Says what was counted for the rule in a place.
    pub(crate) fn set_count(&mut self, slot: usize, count: Count) {
        if let Some(line) = self.lines.get_mut(slot) {
            line.count = count;
        }
    }

    /// Begins counting anew.
    pub(crate) fn reset_counts(&mut self) {
        self.lines.iter_mut().for_each(|line| line.count = Count::default());
    }
}
