//! The rules by their places.

use super::compile::Compiled;
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

/// So many rules there can be.
pub(crate) const PLACES: usize = 1 << 26;

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

/// A rule's place and what it does, as the table of rules has both: what was found says by itself
/// what most packets need of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Number(pub(super) u32);

impl Number {
    /// Bits of the place.
    const PLACE: u32 = PLACES.trailing_zeros();

    pub(super) fn of(slot: usize, does: u8) -> Number {
        Number(slot as u32 | u32::from(does) << Number::PLACE)
    }

    /// The rule's place.
    #[inline]
    pub(super) fn slot(self) -> u32 {
        self.0 & (PLACES as u32 - 1)
    }

    /// What it does, in short.
    #[inline]
    pub(super) fn does(self) -> u8 {
        (self.0 >> Number::PLACE) as u8
    }
}

// Numbers of the table have 31 bits.
const _: () = assert!(((GONE - 1) as u32) << Number::PLACE | (PLACES as u32 - 1) == u32::MAX >> 1);

/// What a connection, or a packet of several rules, needs of a rule.
#[derive(Clone, Copy)]
struct Line {
    rank: u64,
    /// Whose place it is.
    id: u32,
    does: u8,
}

/// A place that nobody has had.
const EMPTY: Line = Line { rank: 0, id: 0, does: GONE };

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
    fn grow(&mut self, slots: usize) {
        if self.lines.len() < slots {
            self.lines.resize(slots, EMPTY);
            self.entries.resize(slots, None);
        }
    }

    /// Puts a rule in its place, which nobody has.
    pub(super) fn put(&mut self, entry: &Arc<Entry>, rank: u64, compiled: &Compiled) -> Number {
        self.grow(entry.slot + 1);
        let (id, does) = (Reference::to(entry).id, does(entry, compiled.is_exact));
        self.lines[entry.slot] = Line { rank, id, does };
        self.entries[entry.slot] = Some(entry.clone());
        Number::of(entry.slot, does)
    }

    /// Takes away the rule in a place.
    pub(super) fn take(&mut self, slot: usize) -> Option<(Number, Arc<Entry>)> {
        let entry = self.entries.get_mut(slot)?.take()?;
        let does = std::mem::replace(&mut self.lines[slot].does, GONE);
        Some((Number::of(slot, does), entry))
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
}
