//! The storage of flows, in chunks of memory that never move.

use super::wheel::TICK;
use super::{Entry, ExclusiveAccess};
use std::ops::Range;
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
    /// The number of the flow's slot, below [`Table::extent`](super::Table::extent).
    #[inline]
    pub fn number(self) -> usize {
        self.0 as usize
    }

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

/// An entry with its key and its links in the timer wheel.
#[derive(Default)]
pub(super) struct Node<E: Entry> {
    pub(super) key: E::Key,
    /// The previous and the next entry of the wheel's list. For a free entry, the next one is the
    /// next free entry.
    pub(super) links: (u32, u32),
    /// The expiry time in nanoseconds; readers that share the table may postpone it.
    deadline: AtomicU64,
    pub(super) entry: E,
}

impl<E: Entry> Node<E> {
    #[inline]
    pub(super) fn deadline(&self) -> u64 {
        self.deadline.load(Relaxed)
    }

    #[inline]
    pub(super) fn set_deadline(&self, time: u64) {
        self.deadline.store(time, Relaxed);
    }
}

/// A flow as a packet needs it under shared access, found in its table once.
pub struct Flow<'t, E: Entry>(pub(super) &'t Node<E>);

impl<E: Entry> Clone for Flow<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: Entry> Copy for Flow<'_, E> {}

impl<'t, E: Entry> Flow<'t, E> {
    /// Its first key.
    #[inline]
    pub fn key(self) -> &'t E::Key {
        &self.0.key
    }

    /// Its data.
    #[inline]
    pub fn data(self) -> &'t E {
        &self.0.entry
    }

    /// Its expiry time.
    #[inline]
    pub fn deadline(self) -> u64 {
        self.0.deadline()
    }

    /// Postpones its expiry, without moving it in the wheel. An earlier expiry needs
    /// [`Table::set_deadline`](super::Table::set_deadline).
    #[inline]
    pub fn postpone(self, until: u64) -> Result<(), ExclusiveAccess> {
        let before = self.deadline();
        if until > before {
            self.0.set_deadline(until);
        }
        // The clocks of concurrent workers may differ by a tick.
        if until.saturating_add(1 << TICK) >= before { Ok(()) } else { Err(ExclusiveAccess) }
    }
}

/// The previous link of a free entry.
const FREE: u32 = u32::MAX;
/// The next link of the last free entry.
const NONE: u32 = u32::MAX - 1;
/// The entries of one allocation. [`Entries::add`] builds a chunk on the stack, so a chunk must be much
/// smaller than that.
const CHUNK: usize = 1024;

/// Entries from the start of a cache line on: those of 64 bytes take one line each.
#[repr(align(64))]
struct Chunk<E: Entry>([Node<E>; CHUNK]);

/// All flows, by id.
pub(super) struct Entries<E: Entry> {
    chunks: Vec<Box<Chunk<E>>>,
    free: u32,
    /// The first id that was never used.
    fresh: u32,
    len: usize,
}

impl<E: Entry> Entries<E> {
    pub(super) fn new() -> Entries<E> {
        Entries { chunks: Vec::new(), free: NONE, fresh: 0, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn memory(&self) -> usize {
        self.chunks.len() * CHUNK * size_of::<Node<E>>()
    }

    #[inline]
    pub(super) fn at(&self, Id(id): Id) -> &Node<E> {
        &self.chunks[id as usize / CHUNK].0[id as usize % CHUNK]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, Id(id): Id) -> &mut Node<E> {
        &mut self.chunks[id as usize / CHUNK].0[id as usize % CHUNK]
    }

    /// The key that a slot of the index stands for.
    #[inline]
    pub(super) fn key(&self, slot: Slot) -> Option<&E::Key> {
        let (id, is_second) = slot.parts();
        let node = self.at(id);
        if is_second { node.entry.second_key() } else { Some(&node.key) }
    }

    pub(super) fn add(&mut self, key: E::Key, entry: E) -> Id {
        self.len += 1;
        let node = Node { key, links: (NONE, NONE), deadline: AtomicU64::new(0), entry };
        if self.free != NONE {
            let id = Id(self.free);
            let old = std::mem::replace(self.at_mut(id), node);
            self.free = old.links.1;
            return id;
        }
        let id = Id(self.fresh);
        if id.0 as usize == self.chunks.len() * CHUNK {
            self.chunks.push(Box::new(Chunk(std::array::from_fn(|_| Node::default()))));
        }
        self.fresh += 1;
        *self.at_mut(id) = node;
        id
    }

    pub(super) fn remove(&mut self, id: Id) -> (E::Key, E) {
        let free = self.free;
        let node = self.at_mut(id);
        node.links = (FREE, free);
        let (key, entry) = (node.key, std::mem::take(&mut node.entry));
        (self.free, self.len) = (id.0, self.len - 1);
        (key, entry)
    }

    /// The flows among these ids.
    pub(super) fn iter_range(&self, ids: Range<usize>) -> impl Iterator<Item = (Id, &E::Key, &E)> {
        let all = ids.map(|at| (Id(at as u32), self.at(Id(at as u32))));
        let used = all.filter(|(_, node)| node.links.0 != FREE);
        used.map(|(id, node)| (id, &node.key, &node.entry))
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
}
