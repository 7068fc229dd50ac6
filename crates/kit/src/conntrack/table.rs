//! The table of flows with one key or two.

use super::entries::{self, Entries, Flow, Id, Slot};
use super::index::{FirstLine, Index};
use super::wheel::Wheel;
use super::{Counts, Entry, Key};
use crate::seed::Seed;

/// A table of flows with a limit. Times are nanoseconds and never decrease.
pub struct Table<E: Entry> {
    index: Index,
    entries: Entries<E>,
    wheel: Wheel,
    seed: Seed,
    limit: usize,
    counts: Counts,
}

/// How many flows are checked for eviction before a new one is refused.
const MAX_EVICTION_CHECKS: usize = 64;

impl<E: Entry> Default for Table<E> {
    fn default() -> Self {
        Table::new(entries::MAX_FLOWS)
    }
}

impl<E: Entry> Table<E> {
    /// The bytes of a flow with its key and its links; 64 are one cache line.
    pub const ENTRY_LEN: usize = size_of::<entries::Node<E>>();

    /// A table for at most `limit` flows (below 2³¹).
    pub fn new(limit: usize) -> Table<E> {
        Table::with_seed(limit, Seed::random())
    }

    /// A table with this seed, which an attacker must not know.
    pub fn with_seed(limit: usize, seed: Seed) -> Table<E> {
        let limit = limit.min(entries::MAX_FLOWS);
        Table {
            index: Index::new(limit),
            entries: Entries::new(),
            wheel: Wheel::new(),
            seed,
            limit,
            counts: Counts::default(),
        }
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest number of flows.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Sets the largest number of flows; existing flows stay.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(entries::MAX_FLOWS);
        self.index.set_limit(self.limit);
    }

    /// The counters so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The table's memory in bytes.
    pub fn memory(&self) -> usize {
        self.index.memory() + self.entries.memory() + self.wheel.memory()
    }

    /// The flow with this key, and whether this is its second key.
    #[inline]
    pub fn find(&self, key: &E::Key) -> Option<(Id, bool)> {
        self.find_slot(key).entry()
    }

    /// As [`Table::find`], with the result as a batch has it.
    #[inline]
    pub fn find_slot(&self, key: &E::Key) -> Slot {
        self.find_hashed(key, key.hash(&self.seed))
    }

    #[inline]
    fn find_hashed(&self, key: &E::Key, hash: u64) -> Slot {
        if self.is_empty() {
            return Slot::NONE;
        }
        let found = self.index.find(hash, |slot| self.entries.key(slot) == Some(key));
        found.unwrap_or(Slot::NONE)
    }

    /// Looks up keys; `found` must be as long as `keys` and gets a result for each. The cache
    /// misses overlap, so this is faster than single lookups if the table is larger than the cache.
    pub fn find_all(&self, keys: &[E::Key], found: &mut [Slot]) {
        if self.is_empty() {
            return found.fill(Slot::NONE);
        }
        for (keys, found) in keys.chunks(BURST).zip(found.chunks_mut(BURST)) {
            let mut hashes = [0; BURST];
            let mut first_lines = [FirstLine::None; BURST];
            for (key, hash) in keys.iter().zip(&mut hashes) {
                *hash = key.hash(&self.seed);
            }
            // Each loop waits for one memory access, of all keys at the same time.
            for (first_line, hash) in first_lines.iter_mut().zip(&hashes[..keys.len()]) {
                *first_line = self.index.first_line(*hash);
            }
            for (((key, found), hash), first_line) in
                keys.iter().zip(found).zip(hashes).zip(first_lines)
            {
                *found = match first_line {
                    FirstLine::Candidate(slot) if self.entries.key(slot) == Some(key) => slot,
                    FirstLine::None => Slot::NONE,
                    FirstLine::Candidate(_) | FirstLine::Spilled => self.find_hashed(key, hash),
                };
            }
        }
    }

    /// A flow, for a packet that needs more than one part of it.
    #[inline]
    pub fn flow(&self, id: Id) -> Flow<'_, E> {
        Flow(self.entries.at(id))
    }

    /// The data of a flow.
    #[inline]
    pub fn get(&self, id: Id) -> &E {
        &self.entries.at(id).entry
    }

    /// The data of a flow, mutable; its second key must not change.
    #[inline]
    pub fn get_mut(&mut self, id: Id) -> &mut E {
        &mut self.entries.at_mut(id).entry
    }

    /// A flow's first key.
    #[inline]
    pub fn key(&self, id: Id) -> &E::Key {
        &self.entries.at(id).key
    }

    /// Adds a flow at time `now` that expires at time `until`. Neither of its keys may exist in the
    /// table. If the table is full, the flow is returned; see [`Table::evict`].
    pub fn insert(&mut self, key: E::Key, entry: E, until: u64, now: u64) -> Result<Id, E> {
        if self.len() >= self.limit {
            self.counts.refused += 1;
            return Err(entry);
        }
        if self.is_empty() {
            self.index.allocate();
            self.wheel.restart(now);
        }
        let second = entry.second_key().copied();
        let id = self.entries.add(key, entry);
        let mut is_indexed = self.add_to_index(id, false, &key);
        if let Some(second) = second.filter(|_| is_indexed) {
            is_indexed = self.add_to_index(id, true, &second);
            if !is_indexed {
                self.remove_from_index(id, false, &key);
            }
        }
        if !is_indexed {
            self.counts.refused += 1;
            return Err(self.entries.remove(id).1);
        }
        self.wheel.arm(&mut self.entries, id, until);
        self.counts.added += 1;
        Ok(id)
    }

    fn add_to_index(&mut self, id: Id, second: bool, key: &E::Key) -> bool {
        let (entries, seed) = (&self.entries, &self.seed);
        let rehash = |slot| entries.key(slot).map_or(0, |key| key.hash(seed));
        self.index.insert(key.hash(seed), id.slot(second), rehash)
    }

    fn remove_from_index(&mut self, id: Id, second: bool, key: &E::Key) {
        self.index.remove(key.hash(&self.seed), id.slot(second));
    }

    /// Sets a flow's expiry and returns its data, as [`Table::get_mut`].
    #[inline]
    pub fn set_deadline(&mut self, id: Id, until: u64) -> &mut E {
        self.wheel.set_deadline(&mut self.entries, id, until)
    }

    /// Removes a flow.
    pub fn remove(&mut self, id: Id) -> (E::Key, E) {
        self.wheel.disarm(&mut self.entries, id);
        let (key, second) = (*self.key(id), self.get(id).second_key().copied());
        self.remove_from_index(id, false, &key);
        if let Some(second) = second {
            self.remove_from_index(id, true, &second);
        }
        self.entries.remove(id)
    }

    /// Removes expired flows and passes them to `over` with the ids that they had, checking `limit` flows at most. Returns
    /// whether none is left to check.
    pub fn expire(&mut self, now: u64, limit: usize, mut over: impl FnMut(Id, E::Key, E)) -> bool {
        let mut checked = 0;
        while checked < limit {
            let mut ids = [Id(0); BURST];
            let count = self.wheel.due(&self.entries, now, &mut ids[..BURST.min(limit - checked)]);
            if count == 0 {
                return true;
            }
            // As in a burst of lookups, the cache misses on the index overlap.
            for &id in &ids[..count] {
                std::hint::black_box(self.index.first_line(self.key(id).hash(&self.seed)));
            }
            for &id in &ids[..count] {
                if self.wheel.check_expired(&mut self.entries, id) {
                    self.counts.expired += 1;
                    let (key, entry) = self.remove(id);
                    over(id, key, entry);
                }
            }
            checked += count;
        }
        false
    }

    /// Whether [`Table::expire`] may find expired flows.
    #[inline]
    pub fn is_due(&self, now: u64) -> bool {
        !self.is_empty() && self.wheel.is_due(now)
    }

    /// Removes a flow if it has expired and [`Table::expire`] has not removed it yet.
    #[inline]
    pub fn take_expired(&mut self, id: Id, now: u64) -> Option<(E::Key, E)> {
        if self.deadline(id) > now { None } else { Some(self.expire_now(id)) }
    }

    #[cold]
    #[inline(never)]
    fn expire_now(&mut self, id: Id) -> (E::Key, E) {
        self.counts.expired += 1;
        self.remove(id)
    }

    /// Evicts the first to expire of some flows for which `may_go` is true.
    pub fn evict(&mut self, may_go: impl FnMut(&E) -> bool) -> Option<(E::Key, E)> {
        let id = self.find_evictable(may_go)?;
        Some(self.evict_id(id))
    }

    /// Finds the flow that [`Table::evict`] evicts, for [`Table::evict_id`].
    pub fn find_evictable(&mut self, mut may_go: impl FnMut(&E) -> bool) -> Option<Id> {
        self.wheel.find_evictable(&mut self.entries, MAX_EVICTION_CHECKS, |entry| may_go(entry))
    }

    /// Evicts this flow.
    pub fn evict_id(&mut self, id: Id) -> (E::Key, E) {
        self.counts.evicted += 1;
        self.remove(id)
    }

    /// One more than the largest slot number of a flow; a flow keeps its slot.
    pub fn extent(&self) -> usize {
        self.entries.extent()
    }

    /// The flow in a slot, if there is one.
    pub fn id_at(&self, number: usize) -> Option<Id> {
        self.entries.id_at(number)
    }

    /// All flows, in any order.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &E::Key, &E)> {
        self.entries.iter_range(0..self.extent())
    }

    /// One part of a listing: what `write` makes of the flows in [`TABLE_PART`] slots from number
    /// `from` on, and the number at which the next part starts. A flow keeps its slot.
    pub fn list_chunk(
        &self,
        from: u64,
        mut write: impl FnMut(&mut String, Id, &E::Key, &E),
    ) -> (String, Option<u64>) {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let end = from.saturating_add(TABLE_PART).min(self.extent());
        let mut text = String::new();
        let some = self.entries.iter_range(from..end);
        some.for_each(|(id, key, entry)| write(&mut text, id, key, entry));
        (text, (end < self.extent()).then_some(end as u64))
    }

    /// The expiry time of a flow.
    #[inline]
    pub fn deadline(&self, id: Id) -> u64 {
        self.entries.at(id).deadline()
    }
}

/// How many slots one part of a listing or of an export covers; of a listing, that takes about 200 µs.
pub const TABLE_PART: usize = 256;
/// How many keys are looked up together.
const BURST: usize = 32;
