//! The eviction order: the mapping that makes room when the table is full.
//!
//! Guaranteed mappings are in one heap, by the end of their guarantee; best-effort mappings are in
//! another, by their expiry. A packet postpones both times without touching the heaps: the entry's
//! time is a lower bound, at which the mapping is checked again. Each check that finds a mapping
//! postponed is paid for by a packet of that mapping.
//!
//! A table that is less than half full has no heaps. Beyond that, each new mapping also enters a
//! few old ones, so that all are entered when the table is full.

use super::Mapping;
use crate::conntrack::{self, Id};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

const MILLISECOND: u64 = 1_000_000;
/// How many old mappings are entered, and how many stale entries are updated, per new mapping.
const ENTRIES_PER_MAPPING: usize = 4;
/// How many stale entries one search updates, so that no packet waits for a table of a million; with more
/// stale entries it takes the best of these.
const MAX_CHECKS: usize = 1 << 16;

/// The heap entry that is valid for a mapping; its other entries are void.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EvictionEntry {
    /// No entry, or one of heaps that have been discarded.
    #[default]
    None,
    /// The entry in the guaranteed heap with this time; its lower 32 bits are compared.
    Guaranteed(u32),
    /// The entry in the best-effort heap with this time.
    BestEffort(u32),
}

/// Mappings by the millisecond at which each is checked again.
type Heap = BinaryHeap<Reverse<(u64, Id)>>;

/// The mappings in eviction order.
#[derive(Debug, Default)]
pub(super) struct EvictionQueue {
    guaranteed: Heap,
    best_effort: Heap,
    /// How many slots of the table have been entered; `None` if there are no heaps yet.
    entered: Option<usize>,
}

impl EvictionQueue {
    /// Enters a new mapping.
    pub(super) fn add(&mut self, flows: &mut conntrack::Table<Mapping>, id: Id, now: u64) {
        let (len, capacity) = (flows.len(), flows.limit());
        match self.entered {
            None if len * 2 >= capacity => self.entered = Some(0),
            None => return,
            Some(_) if len * 4 < capacity => return *self = EvictionQueue::default(),
            // Void entries leave when their time comes. If there are more than this many, the
            // heaps are rebuilt.
            Some(_) if self.guaranteed.len() + self.best_effort.len() > 4 * len + 1024 => {
                *self = EvictionQueue { entered: Some(0), ..EvictionQueue::default() };
            }
            Some(_) => {}
        }
        let now = now / MILLISECOND;
        self.enter(flows, id, now);
        self.enter_old(flows, now, ENTRIES_PER_MAPPING);
        self.release(flows, now, ENTRIES_PER_MAPPING);
        self.update_best_effort(flows, now, ENTRIES_PER_MAPPING, now);
    }

    /// Enters a mapping again if its expiry has moved forward.
    #[inline]
    pub(super) fn refresh(&mut self, flows: &mut conntrack::Table<Mapping>, id: Id, now: u64) {
        if let EvictionEntry::BestEffort(time) = flows.get(id).eviction_entry {
            let end = (flows.deadline(id) / MILLISECOND) as u32;
            if (end.wrapping_sub(time) as i32) < 0 {
                self.enter(flows, id, now / MILLISECOND);
            }
        }
    }

    /// The mapping that expires first among those whose guarantee is over.
    pub(super) fn first(&mut self, flows: &mut conntrack::Table<Mapping>, now: u64) -> Option<Id> {
        let now = now / MILLISECOND;
        self.entered = self.entered.or(Some(0));
        self.enter_old(flows, now, usize::MAX);
        self.release(flows, now, MAX_CHECKS);
        self.update_best_effort(flows, now, MAX_CHECKS, u64::MAX)
    }

    /// Pushes a mapping into the heap for its current state.
    fn enter(&mut self, flows: &mut conntrack::Table<Mapping>, id: Id, now: u64) {
        let end = flows.deadline(id) / MILLISECOND;
        let mapping = flows.get_mut(id);
        let guaranteed = mapping.guarantee_end(end);
        if guaranteed > now {
            mapping.eviction_entry = EvictionEntry::Guaranteed(guaranteed as u32);
            self.guaranteed.push(Reverse((guaranteed, id)));
        } else {
            mapping.eviction_entry = EvictionEntry::BestEffort(end as u32);
            self.best_effort.push(Reverse((end, id)));
        }
    }

    /// Enters mappings that are older than the heaps, from up to `limit` further slots.
    fn enter_old(&mut self, flows: &mut conntrack::Table<Mapping>, now: u64, limit: usize) {
        let from = self.entered.unwrap_or(0);
        let to = from.saturating_add(limit).min(flows.extent());
        for place in from..to {
            if let Some(id) = flows.id_at(place) {
                self.enter(flows, id, now);
            }
        }
        self.entered = Some(to.max(from));
    }

    /// Moves mappings whose guarantee is over into the best-effort heap.
    fn release(&mut self, flows: &mut conntrack::Table<Mapping>, now: u64, limit: usize) {
        for _ in 0..limit {
            let Some(top) = self.guaranteed.peek_mut().filter(|top| top.0.0 <= now) else { return };
            let Reverse((time, id)) = PeekMut::pop(top);
            if flows.get(id).eviction_entry == EvictionEntry::Guaranteed(time as u32) {
                self.enter(flows, id, now);
            }
        }
    }

    /// Updates the first entries of the best-effort heap whose time is at most `last`, and returns
    /// the mapping that expires first: of all mappings if at most `limit` entries are stale, else
    /// of those that were checked.
    fn update_best_effort(
        &mut self,
        flows: &mut conntrack::Table<Mapping>,
        now: u64,
        limit: usize,
        last: u64,
    ) -> Option<Id> {
        let mut best: Option<(u64, Id)> = None;
        for _ in 0..limit {
            let mut top = self.best_effort.peek_mut().filter(|top| top.0.0 <= last)?;
            let Reverse((time, id)) = *top;
            if flows.get(id).eviction_entry != EvictionEntry::BestEffort(time as u32) {
                PeekMut::pop(top);
                continue;
            }
            let end = flows.deadline(id) / MILLISECOND;
            let mapping = flows.get_mut(id);
            let guaranteed = mapping.guarantee_end(end);
            if guaranteed > now {
                mapping.eviction_entry = EvictionEntry::Guaranteed(guaranteed as u32);
                PeekMut::pop(top);
                self.guaranteed.push(Reverse((guaranteed, id)));
            } else if end > time {
                mapping.eviction_entry = EvictionEntry::BestEffort(end as u32);
                *top = Reverse((end, id));
                best = best.filter(|best| best.0 <= end).or(Some((end, id)));
            } else {
                return Some(id);
            }
        }
        best.map(|(_, id)| id)
    }
}

impl EvictionQueue {
    /// The number of heap entries, with void ones.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.guaranteed.len() + self.best_effort.len()
    }
}
