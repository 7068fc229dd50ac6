//! Where flows lie: in pieces of memory that never move.

use super::Flow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A flow in a table, for as long as it is there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id(pub(super) u32);

/// A flow that was found, and by which of its keys; or that none was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(u32);

/// More flows than that have no numbers.
pub(super) const MOST: usize = SECOND as usize - 1;
/// Marks a slot of a flow's second key.
const SECOND: u32 = 1 << 31;

impl Id {
    pub(super) fn slot(self, second: bool) -> Slot {
        Slot(if second { self.0 | SECOND } else { self.0 })
    }
}

impl Slot {
    /// No flow.
    pub const NONE: Slot = Slot(u32::MAX);

    /// The flow, and whether it was its second key, if there is one.
    #[inline]
    pub fn found(self) -> Option<(Id, bool)> {
        (self != Slot::NONE).then(|| self.parts())
    }

    /// The flow, and whether it is its second key.
    #[inline]
    pub(super) fn parts(self) -> (Id, bool) {
        (Id(self.0 & !SECOND), self.0 & SECOND != 0)
    }
}

/// A flow, and its place in the wheel of deadlines.
#[derive(Default)]
pub(super) struct Entry<F: Flow> {
    pub(super) key: F::Key,
    /// The one before and the one behind; for an entry that is free, the next
    /// free one is behind.
    pub(super) links: (u32, u32),
    /// When it ends, in nanoseconds; several readers of the table may put that off.
    deadline: AtomicU64,
    pub(super) flow: F,
}

impl<F: Flow> Entry<F> {
    #[inline]
    pub(super) fn deadline(&self) -> u64 {
        self.deadline.load(Relaxed)
    }

    #[inline]
    pub(super) fn set_deadline(&self, time: u64) {
        self.deadline.store(time, Relaxed);
    }
}

/// Before an entry that is free.
const FREE: u32 = u32::MAX;
/// Behind the last that is free.
const NONE: u32 = u32::MAX - 1;
/// How many entries lie together.
const PIECE: usize = 4096;

/// All flows, by number.
pub(super) struct Entries<F: Flow> {
    pieces: Vec<Box<[Entry<F>; PIECE]>>,
    free: u32,
    /// The first that was never used.
    fresh: u32,
    len: usize,
}

impl<F: Flow> Entries<F> {
    pub(super) fn new() -> Entries<F> {
        Entries { pieces: Vec::new(), free: NONE, fresh: 0, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn memory(&self) -> usize {
        self.pieces.len() * PIECE * size_of::<Entry<F>>()
    }

    #[inline]
    pub(super) fn at(&self, Id(id): Id) -> &Entry<F> {
        &self.pieces[id as usize / PIECE][id as usize % PIECE]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, Id(id): Id) -> &mut Entry<F> {
        &mut self.pieces[id as usize / PIECE][id as usize % PIECE]
    }

    /// The key that a slot of the index is for.
    #[inline]
    pub(super) fn key(&self, slot: Slot) -> Option<&F::Key> {
        let (id, is_second) = slot.parts();
        let entry = self.at(id);
        if is_second { entry.flow.second() } else { Some(&entry.key) }
    }

    pub(super) fn add(&mut self, key: F::Key, flow: F) -> Id {
        self.len += 1;
        let entry = Entry { key, links: (NONE, NONE), deadline: AtomicU64::new(0), flow };
        if self.free != NONE {
            let id = Id(self.free);
            let old = std::mem::replace(self.at_mut(id), entry);
            self.free = old.links.1;
            return id;
        }
        let id = Id(self.fresh);
        if id.0 as usize == self.pieces.len() * PIECE {
            // By way of a vector: a whole piece may be more than the stack has room for.
            let piece: Vec<Entry<F>> = (0..PIECE).map(|_| Entry::default()).collect();
            self.pieces.extend(piece.into_boxed_slice().try_into().ok());
        }
        self.fresh += 1;
        *self.at_mut(id) = entry;
        id
    }

    pub(super) fn remove(&mut self, id: Id) -> (F::Key, F) {
        let free = self.free;
        let entry = self.at_mut(id);
        entry.links = (FREE, free);
        let (key, flow) = (entry.key, std::mem::take(&mut entry.flow));
        (self.free, self.len) = (id.0, self.len - 1);
        (key, flow)
    }

    /// Those among `most` places from place `from` on, and the place behind these, if any is used.
    pub(super) fn some(
        &self,
        from: usize,
        most: usize,
    ) -> (impl Iterator<Item = (Id, &F::Key, &F)>, Option<usize>) {
        let end = from.saturating_add(most).min(self.fresh as usize);
        let all = (from..end).map(|at| (Id(at as u32), self.at(Id(at as u32))));
        let used = all.filter(|(_, entry)| entry.links.0 != FREE);
        let next = (end < self.fresh as usize).then_some(end);
        (used.map(|(id, entry)| (id, &entry.key, &entry.flow)), next)
    }

    /// How many numbers have ever been given: all flows have smaller ones.
    pub(super) fn extent(&self) -> usize {
        self.fresh as usize
    }

    /// The flow with this number, if there is one.
    pub(super) fn nth(&self, number: usize) -> Option<Id> {
        let id = Id(u32::try_from(number).ok().filter(|&number| number < self.fresh)?);
        (self.at(id).links.0 != FREE).then_some(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, &F::Key, &F)> {
        let all = self.pieces.iter().flat_map(|piece| piece.iter()).take(self.fresh as usize);
        let all = all.enumerate();
        let used = all.filter(|(_, entry)| entry.links.0 != FREE);
        used.map(|(id, entry)| (Id(id as u32), &entry.key, &entry.flow))
    }
}
