//! Which mapping makes room for another when the table is full.
//!
//! Mappings under guarantee are in one heap, by when that ends; the others, which are best
//! effort, in a second one, by when they end. Packets put both off, and move nothing: an entry
//! says when its mapping is to be looked at again, never later than what it is sorted by. Each
//! look that finds it put off is paid for by a packet.
//!
//! A table that is less than half full has no order at all. Beyond that, each new mapping
//! brings a few others into it, so all are there when the table is full.

use super::Mapping;
use crate::flow::{Flows, Id};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

const MILLISECOND: u64 = 1_000_000;
/// How many mappings are entered, and how many outdated entries are mended, for each new one.
const PACE: usize = 4;
/// How many outdated entries one search mends; behind more than that it finds the best of them.
const LOOKS: usize = 4096;

/// Which entry is a mapping's; all others are void.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Queued {
    /// None, or one of an order that is no more.
    #[default]
    No,
    /// That among the guaranteed with this time, of which the lower half is kept.
    Guaranteed(u32),
    /// That among those of best effort.
    BestEffort(u32),
}

/// Mappings by the millisecond when each is to be looked at.
type Heap = BinaryHeap<Reverse<(u64, Id)>>;

/// The order in which mappings make room for others.
#[derive(Debug, Default)]
pub(super) struct Order {
    guaranteed: Heap,
    best_effort: Heap,
    /// So many places of the table have been gone through; none, if there is no order yet.
    entered: Option<usize>,
}

impl Order {
    /// Notes a new mapping of a table that has room for `capacity`.
    pub(super) fn add(&mut self, flows: &mut Flows<Mapping>, id: Id, now: u64, capacity: usize) {
        let len = flows.len();
        match self.entered {
            None if len * 2 >= capacity => self.entered = Some(0),
            None => return,
            Some(_) if len * 4 < capacity => return *self = Order::default(),
            // Void entries go when their time comes; so many of them are no accident.
            Some(_) if self.guaranteed.len() + self.best_effort.len() > 4 * len + 1024 => {
                *self = Order { entered: Some(0), ..Order::default() };
            }
            Some(_) => {}
        }
        let now = now / MILLISECOND;
        self.enter(flows, id, now);
        self.go_through(flows, now, PACE);
        self.release(flows, now, PACE);
        self.mend(flows, now, PACE, now);
    }

    /// Notes that a mapping's end has changed.
    #[inline]
    pub(super) fn review(&mut self, flows: &mut Flows<Mapping>, id: Id, now: u64) {
        if let Queued::BestEffort(time) = flows.get(id).queued {
            let end = (flows.ends(id) / MILLISECOND) as u32;
            if (end.wrapping_sub(time) as i32) < 0 {
                self.enter(flows, id, now / MILLISECOND);
            }
        }
    }

    /// Of the mappings whose guarantee is over, the one that ends first.
    pub(super) fn first(&mut self, flows: &mut Flows<Mapping>, now: u64) -> Option<Id> {
        let now = now / MILLISECOND;
        self.entered = self.entered.or(Some(0));
        self.go_through(flows, now, usize::MAX);
        self.release(flows, now, LOOKS);
        self.mend(flows, now, LOOKS, u64::MAX)
    }

    /// Enters a mapping where it belongs now.
    fn enter(&mut self, flows: &mut Flows<Mapping>, id: Id, now: u64) {
        let end = flows.ends(id) / MILLISECOND;
        let mapping = flows.get_mut(id);
        let guaranteed = mapping.guaranteed(end);
        if guaranteed > now {
            mapping.queued = Queued::Guaranteed(guaranteed as u32);
            self.guaranteed.push(Reverse((guaranteed, id)));
        } else {
            mapping.queued = Queued::BestEffort(end as u32);
            self.best_effort.push(Reverse((end, id)));
        }
    }

    /// Enters mappings that were made before there was an order, `most` places further.
    fn go_through(&mut self, flows: &mut Flows<Mapping>, now: u64, most: usize) {
        let from = self.entered.unwrap_or(0);
        let to = from.saturating_add(most).min(flows.places());
        for place in from..to {
            if let Some(id) = flows.in_place(place) {
                self.enter(flows, id, now);
            }
        }
        self.entered = Some(to.max(from));
    }

    /// Moves mappings whose guarantee is over among those of best effort.
    fn release(&mut self, flows: &mut Flows<Mapping>, now: u64, most: usize) {
        for _ in 0..most {
            let Some(top) = self.guaranteed.peek_mut().filter(|top| top.0.0 <= now) else { return };
            let Reverse((time, id)) = PeekMut::pop(top);
            if flows.get(id).queued == Queued::Guaranteed(time as u32) {
                self.enter(flows, id, now);
            }
        }
    }

    /// Mends the first entries among those of best effort, as far as they are not beyond `last`,
    /// and answers the mapping that ends first: of all if at most `most` are outdated, else of
    /// those that were looked at.
    fn mend(&mut self, flows: &mut Flows<Mapping>, now: u64, most: usize, last: u64) -> Option<Id> {
        let mut best: Option<(u64, Id)> = None;
        for _ in 0..most {
            let mut top = self.best_effort.peek_mut().filter(|top| top.0.0 <= last)?;
            let Reverse((time, id)) = *top;
            if flows.get(id).queued != Queued::BestEffort(time as u32) {
                PeekMut::pop(top);
                continue;
            }
            let end = flows.ends(id) / MILLISECOND;
            let mapping = flows.get_mut(id);
            let guaranteed = mapping.guaranteed(end);
            if guaranteed > now {
                mapping.queued = Queued::Guaranteed(guaranteed as u32);
                PeekMut::pop(top);
                self.guaranteed.push(Reverse((guaranteed, id)));
            } else if end > time {
                mapping.queued = Queued::BestEffort(end as u32);
                *top = Reverse((end, id));
                best = best.filter(|best| best.0 <= end).or(Some((end, id)));
            } else {
                return Some(id);
            }
        }
        best.map(|(_, id)| id)
    }
}

impl Order {
    /// How many entries there are, void ones too.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.guaranteed.len() + self.best_effort.len()
    }
}
