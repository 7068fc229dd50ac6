//! The storage of flows, in chunks of memory that never move.

use super::Flow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The id of a flow in a table, valid until the flow is removed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id(pub(super) u32);

/// The result of a lookup: a flow and which of its keys was found, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(u32);

/// The largest number of flows.
pub(super) const MAX_FLOWS: usize = SECOND as usize - 1;
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

    /// The flow, and whether its second key was found; `None` for [`Slot::NONE`].
    #[inline]
    pub fn entry(self) -> Option<(Id, bool)> {
        (self != Slot::NONE).then(|| self.parts())
    }

    /// The flow, and whether the slot is that of its second key.
    #[inline]
    pub(super) fn parts(self) -> (Id, bool) {
        (Id(self.0 & !SECOND), self.0 & SECOND != 0)
    }
}

/// A flow and its links in the timer wheel.
#[derive(Default)]
pub(super) struct Entry<F: Flow> {
    pub(super) key: F::Key,
    /// The previous and the next entry of the wheel's list. For a free entry, the next one is the
    /// next free entry.
    pub(super) links: (u32, u32),
    /// The expiry time in nanoseconds; readers that share the table may postpone it.
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

/// The previous link of a free entry.
const FREE: u32 = u32::MAX;
/// The next link of the last free entry.
const NONE: u32 = u32::MAX - 1;
/// The entries of one allocation.
const CHUNK: usize = 4096;

/// All flows, by id.
pub(super) struct Entries<F: Flow> {
    chunks: Vec<Box<[Entry<F>; CHUNK]>>,
    free: u32,
    /// The first id that was never used.
    fresh: u32,
    len: usize,
}

impl<F: Flow> Entries<F> {
    pub(super) fn new() -> Entries<F> {
        Entries { chunks: Vec::new(), free: NONE, fresh: 0, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn memory(&self) -> usize {
        self.chunks.len() * CHUNK * size_of::<Entry<F>>()
    }

    #[inline]
    pub(super) fn at(&self, Id(id): Id) -> &Entry<F> {
        &self.chunks[id as usize / CHUNK][id as usize % CHUNK]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, Id(id): Id) -> &mut Entry<F> {
        &mut self.chunks[id as usize / CHUNK][id as usize % CHUNK]
    }

    /// The key that a slot of the index stands for.
    #[inline]
    pub(super) fn key(&self, slot: Slot) -> Option<&F::Key> {
        let (id, is_second) = slot.parts();
        let entry = self.at(id);
        if is_second { entry.flow.second_key() } else { Some(&entry.key) }
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
        if id.0 as usize == self.chunks.len() * CHUNK {
            // Built in a vector: a whole chunk may be larger than the stack.
            let chunk: Vec<Entry<F>> = (0..CHUNK).map(|_| Entry::default()).collect();
            self.chunks.extend(chunk.into_boxed_slice().try_into().ok());
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

    /// The flows among the `limit` ids from `from` on, and the next id, if there are further ones.
    pub(super) fn iter_range(
        &self,
        from: usize,
        limit: usize,
    ) -> (impl Iterator<Item = (Id, &F::Key, &F)>, Option<usize>) {
        let end = from.saturating_add(limit).min(self.fresh as usize);
        let all = (from..end).map(|at| (Id(at as u32), self.at(Id(at as u32))));
        let used = all.filter(|(_, entry)| entry.links.0 != FREE);
        let next = (end < self.fresh as usize).then_some(end);
        (used.map(|(id, entry)| (id, &entry.key, &entry.flow)), next)
    }

    /// One more than the largest id handed out so far.
    pub(super) fn extent(&self) -> usize {
        self.fresh as usize
    }

    /// The flow with this number, if it exists.
    pub(super) fn id_at(&self, number: usize) -> Option<Id> {
        let id = Id(u32::try_from(number).ok().filter(|&number| number < self.fresh)?);
        (self.at(id).links.0 != FREE).then_some(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, &F::Key, &F)> {
        let all = self.chunks.iter().flat_map(|chunk| chunk.iter()).take(self.fresh as usize);
        let all = all.enumerate();
        let used = all.filter(|(_, entry)| entry.links.0 != FREE);
        used.map(|(id, entry)| (Id(id as u32), &entry.key, &entry.flow))
    }
}
