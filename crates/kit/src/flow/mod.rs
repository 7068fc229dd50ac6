//! A table of flows by key: a lookup takes two cache misses, flows expire without a scan, and
//! memory is bounded.
//!
//! A flow has one key or two: a connection whose addresses are rewritten is found by the tuples on
//! either side. Both directions of a flow can share one entry, because [`Tuple4::ordered`] gives
//! them the same key.
//!
//! The table grows a page at a time: an insertion moves at most some hundred other flows and copies
//! a directory of four bytes a page. Keys are hashed under a random seed, so that an attacker
//! cannot choose keys that collide.
//!
//! Workers may share a table for reading. Meanwhile each packet can still postpone the expiry of
//! its flow ([`Flows::postpone`]).

mod entries;
mod index;
mod seed;
#[cfg(test)]
mod tests;
mod tuple;
mod wheel;

pub use entries::{Id, Slot};
pub use seed::Seed;
pub use tuple::{Tuple4, Tuple6};

use entries::Entries;
use index::{FirstLine, Index};
use wheel::Wheel;

/// The key of a flow.
pub trait Key: Copy + Eq + Default {
    /// A hash of 64 bits, each of which depends on the whole key and the seed.
    fn hash(&self, seed: &Seed) -> u64;
}

/// The data of a flow.
pub trait Flow: Default {
    /// The type of its keys.
    type Key: Key;

    /// Its second key, if it has one; it must not change while the flow is in the table.
    fn second_key(&self) -> Option<&Self::Key> {
        None
    }
}

/// Counters since the table was created.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Flows that were added.
    pub added: u64,
    /// Flows that expired.
    pub expired: u64,
    /// Flows that were evicted before their expiry, to make room.
    pub evicted: u64,
    /// Flows that were refused for lack of room.
    pub refused: u64,
}

/// The operation needs exclusive access to the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExclusiveAccess;

/// A table of flows with a limit. Times are nanoseconds and never decrease.
pub struct Flows<F: Flow> {
    index: Index,
    entries: Entries<F>,
    wheel: Wheel,
    seed: Seed,
    limit: usize,
    counts: Counts,
}

/// How many flows are checked for eviction before a new one is refused.
const MAX_EVICTION_CHECKS: usize = 64;

impl<F: Flow> Flows<F> {
    /// A table for at most `limit` flows (below 2³¹), at time `now`.
    pub fn new(limit: usize, now: u64) -> Flows<F> {
        Flows::with_seed(limit, now, Seed::random())
    }

    /// A table with this seed, which an attacker must not know.
    pub fn with_seed(limit: usize, now: u64, seed: Seed) -> Flows<F> {
        let limit = limit.min(entries::MAX_FLOWS);
        Flows {
            index: Index::new(limit),
            entries: Entries::new(),
            wheel: Wheel::new(now),
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
    pub fn find(&self, key: &F::Key) -> Option<(Id, bool)> {
        self.find_hashed(key, key.hash(&self.seed)).entry()
    }

    #[inline]
    fn find_hashed(&self, key: &F::Key, hash: u64) -> Slot {
        let found = self.index.find(hash, |slot| self.entries.key(slot) == Some(key));
        found.unwrap_or(Slot::NONE)
    }

    /// Looks up keys; `found` must be as long as `keys` and gets a result for each. The cache
    /// misses overlap, so this is faster than single lookups if the table is larger than the cache.
    pub fn find_all(&self, keys: &[F::Key], found: &mut [Slot]) {
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

    /// The data of a flow.
    #[inline]
    pub fn get(&self, id: Id) -> &F {
        &self.entries.at(id).flow
    }

    /// The data of a flow, mutable; its second key must not change.
    #[inline]
    pub fn get_mut(&mut self, id: Id) -> &mut F {
        &mut self.entries.at_mut(id).flow
    }

    /// A flow's first key.
    #[inline]
    pub fn key(&self, id: Id) -> &F::Key {
        &self.entries.at(id).key
    }

    /// Adds a flow that expires at time `until`. Neither of its keys may exist in the table. If the
    /// table is full, the first to expire of some flows for which `may_go` is true is evicted; if
    /// there is none, the new flow is returned.
    pub fn insert(
        &mut self,
        key: F::Key,
        flow: F,
        until: u64,
        may_go: impl FnMut(&F) -> bool,
    ) -> Result<Id, F> {
        if self.len() >= self.limit && self.evict(may_go).is_none() {
            self.counts.refused += 1;
            return Err(flow);
        }
        let second = flow.second_key().copied();
        let id = self.entries.add(key, flow);
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

    fn add_to_index(&mut self, id: Id, second: bool, key: &F::Key) -> bool {
        let (entries, seed) = (&self.entries, &self.seed);
        let rehash = |slot| entries.key(slot).map_or(0, |key| key.hash(seed));
        self.index.insert(key.hash(seed), id.slot(second), rehash)
    }

    fn remove_from_index(&mut self, id: Id, second: bool, key: &F::Key) {
        self.index.remove(key.hash(&self.seed), id.slot(second));
    }

    /// Sets a flow's expiry and returns its data, as [`Flows::get_mut`].
    #[inline]
    pub fn set_deadline(&mut self, id: Id, until: u64) -> &mut F {
        self.wheel.set_deadline(&mut self.entries, id, until)
    }

    /// Postpones a flow's expiry under shared access. An earlier expiry needs
    /// [`Flows::set_deadline`].
    #[inline]
    pub fn postpone(&self, id: Id, until: u64) -> Result<(), ExclusiveAccess> {
        if self.wheel.postpone(&self.entries, id, until) { Ok(()) } else { Err(ExclusiveAccess) }
    }

    /// Removes a flow.
    pub fn remove(&mut self, id: Id) -> (F::Key, F) {
        self.wheel.disarm(&mut self.entries, id);
        let (key, second) = (*self.key(id), self.get(id).second_key().copied());
        self.remove_from_index(id, false, &key);
        if let Some(second) = second {
            self.remove_from_index(id, true, &second);
        }
        self.entries.remove(id)
    }

    /// Removes expired flows and passes them to `over`, checking `limit` flows at most. Returns
    /// whether none is left to check.
    pub fn expire(&mut self, now: u64, limit: usize, mut over: impl FnMut(F::Key, F)) -> bool {
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
                    let (key, flow) = self.remove(id);
                    over(key, flow);
                }
            }
            checked += count;
        }
        false
    }

    /// Whether [`Flows::expire`] may find expired flows.
    #[inline]
    pub fn is_due(&self, now: u64) -> bool {
        self.wheel.is_due(now)
    }

    /// Removes a flow if it has expired and [`Flows::expire`] has not removed it yet.
    #[inline]
    pub fn take_expired(&mut self, id: Id, now: u64) -> Option<(F::Key, F)> {
        if self.deadline(id) > now { None } else { Some(self.expire_now(id)) }
    }

    #[cold]
    #[inline(never)]
    fn expire_now(&mut self, id: Id) -> (F::Key, F) {
        self.counts.expired += 1;
        self.remove(id)
    }

    /// Evicts the first to expire of some flows for which `may_go` is true.
    pub fn evict(&mut self, mut may_go: impl FnMut(&F) -> bool) -> Option<(F::Key, F)> {
        let id = self
            .wheel
            .find_evictable(&mut self.entries, MAX_EVICTION_CHECKS, |flow| may_go(flow))?;
        Some(self.evict_id(id))
    }

    /// Evicts this flow.
    pub fn evict_id(&mut self, id: Id) -> (F::Key, F) {
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
    pub fn iter(&self) -> impl Iterator<Item = (Id, &F::Key, &F)> {
        self.entries.iter()
    }

    /// The flows in `limit` slots from number `from` on, and the number at which the next part
    /// starts. A flow keeps its slot.
    pub fn iter_range(
        &self,
        from: usize,
        limit: usize,
    ) -> (impl Iterator<Item = (Id, &F::Key, &F)>, Option<usize>) {
        self.entries.iter_range(from, limit)
    }

    /// The expiry time of a flow.
    #[inline]
    pub fn deadline(&self, id: Id) -> u64 {
        self.entries.at(id).deadline()
    }
}

/// How many keys are looked up together.
const BURST: usize = 32;
