//! Flows by key: found in two cache misses, forgotten without a scan, and never
//! more of them than there is memory for.
//!
//! A flow has one key or two: a connection whose addresses are rewritten is found
//! by what its packets look like on either side. Both directions of a flow are one
//! entry, for [`Tuple4::ordered`] gives them the same key.
//!
//! The table grows a page at a time: an insertion waits for some hundred others to be
//! moved, and for a directory of four bytes a page to be copied. Keys are hashed under a
//! random seed, so nobody outside can choose keys that fall together.
//!
//! Those who share a table may read it at the same time; what each packet changes, the end
//! of its flow, they may say meanwhile ([`Flows::put_off`]).

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
use index::{Guess, Index};
use wheel::Wheel;

/// What flows are found by.
pub trait Key: Copy + Eq + Default {
    /// Sixty-four bits of which each depends on all of the key and the seed.
    fn hash(&self, seed: &Seed) -> u64;
}

/// What is kept of a flow.
pub trait Flow: Default {
    /// What it is found by.
    type Key: Key;

    /// Its second key, if it has one; the same for as long as the flow is there.
    fn second(&self) -> Option<&Self::Key> {
        None
    }
}

/// What became of flows since the table was made.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Flows that were added.
    pub added: u64,
    /// Flows that ended because their time was over.
    pub expired: u64,
    /// Flows that had to go before their time, for others.
    pub evicted: u64,
    /// Flows that found no room.
    pub refused: u64,
}

/// What a packet wants can only be done by who has the table to himself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait;

/// Flows, up to a limit; times are nanoseconds, and never go back.
pub struct Flows<F: Flow> {
    index: Index,
    entries: Entries<F>,
    wheel: Wheel,
    seed: Seed,
    limit: usize,
    counts: Counts,
}

/// How many flows are looked at before one is refused because the table is full.
const SEARCH: usize = 64;

impl<F: Flow> Flows<F> {
    /// A table for at most `limit` flows (below 2³¹), at time `now`.
    pub fn new(limit: usize, now: u64) -> Flows<F> {
        Flows::with_seed(limit, now, Seed::random())
    }

    /// The same with a seed of one's choice, which nobody outside may know.
    pub fn with_seed(limit: usize, now: u64, seed: Seed) -> Flows<F> {
        let limit = limit.min(entries::MOST);
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many flows there may be.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Sets how many flows there may be; those that are there stay.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(entries::MOST);
        self.index.set_limit(self.limit);
    }

    /// What became of flows so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Bytes of memory that the table has.
    pub fn memory(&self) -> usize {
        self.index.memory() + self.entries.memory() + self.wheel.memory()
    }

    /// The flow with this key, and whether it is its second.
    #[inline]
    pub fn find(&self, key: &F::Key) -> Option<(Id, bool)> {
        self.find_hashed(key, key.hash(&self.seed)).found()
    }

    #[inline]
    fn find_hashed(&self, key: &F::Key, hash: u64) -> Slot {
        let found = self.index.find(hash, |slot| self.entries.key(slot) == Some(key));
        found.unwrap_or(Slot::NONE)
    }

    /// Looks up keys: `found`, as long as `keys`, gets an answer for each. Waits for
    /// memory overlap, so this is faster than one by one where the table is larger
    /// than the cache.
    pub fn find_all(&self, keys: &[F::Key], found: &mut [Slot]) {
        for (keys, found) in keys.chunks(BURST).zip(found.chunks_mut(BURST)) {
            let mut hashes = [0; BURST];
            let mut guesses = [Guess::None; BURST];
            for (key, hash) in keys.iter().zip(&mut hashes) {
                *hash = key.hash(&self.seed);
            }
            // Each pass waits for one place in memory, and for all keys at once.
            for (guess, hash) in guesses.iter_mut().zip(&hashes[..keys.len()]) {
                *guess = self.index.guess(*hash);
            }
            for (((key, found), hash), guess) in keys.iter().zip(found).zip(hashes).zip(guesses) {
                *found = match guess {
                    Guess::This(slot) if self.entries.key(slot) == Some(key) => slot,
                    Guess::None => Slot::NONE,
                    Guess::This(_) | Guess::Elsewhere => self.find_hashed(key, hash),
                };
            }
        }
    }

    /// What is kept of a flow.
    #[inline]
    pub fn get(&self, id: Id) -> &F {
        &self.entries.at(id).flow
    }

    /// What is kept of a flow, to be changed; its second key has to stay.
    #[inline]
    pub fn get_mut(&mut self, id: Id) -> &mut F {
        &mut self.entries.at_mut(id).flow
    }

    /// A flow's first key.
    #[inline]
    pub fn key(&self, id: Id) -> &F::Key {
        &self.entries.at(id).key
    }

    /// Adds a flow, which ends at time `until` if nobody says otherwise. Neither of
    /// its keys may be there. If the table is full, the flow that would end first
    /// goes, of some that `may_go`; if there is none, the new one comes back.
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
        let second = flow.second().copied();
        let id = self.entries.add(key, flow);
        let mut held = self.enter(id, false, &key);
        if let Some(second) = second.filter(|_| held) {
            held = self.enter(id, true, &second);
            if !held {
                self.leave(id, false, &key);
            }
        }
        if !held {
            self.counts.refused += 1;
            return Err(self.entries.remove(id).1);
        }
        self.wheel.arm(&mut self.entries, id, until);
        self.counts.added += 1;
        Ok(id)
    }

    fn enter(&mut self, id: Id, second: bool, key: &F::Key) -> bool {
        let (entries, seed) = (&self.entries, &self.seed);
        let rehash = |slot| entries.key(slot).map_or(0, |key| key.hash(seed));
        self.index.insert(key.hash(seed), id.slot(second), rehash)
    }

    fn leave(&mut self, id: Id, second: bool, key: &F::Key) {
        self.index.remove(key.hash(&self.seed), id.slot(second));
    }

    /// Says anew when a flow ends; gives what is kept of it, as [`Flows::get_mut`].
    #[inline]
    pub fn keep(&mut self, id: Id, until: u64) -> &mut F {
        self.wheel.keep(&mut self.entries, id, until)
    }

    /// Says anew when a flow ends, by one of several who read the table at the same time; one
    /// that is to end earlier waits for [`Flows::keep`].
    #[inline]
    pub fn put_off(&self, id: Id, until: u64) -> Result<(), Wait> {
        if self.wheel.put_off(&self.entries, id, until) { Ok(()) } else { Err(Wait) }
    }

    /// Ends a flow.
    pub fn remove(&mut self, id: Id) -> (F::Key, F) {
        self.wheel.disarm(&mut self.entries, id);
        let (key, second) = (*self.key(id), self.get(id).second().copied());
        self.leave(id, false, &key);
        if let Some(second) = second {
            self.leave(id, true, &second);
        }
        self.entries.remove(id)
    }

    /// Ends flows whose time is over and hands them to `over`, looking at `most`
    /// flows at the most. Whether there is nothing left to look at.
    pub fn expire(&mut self, now: u64, most: usize, mut over: impl FnMut(F::Key, F)) -> bool {
        let mut seen = 0;
        while seen < most {
            let mut ids = [Id(0); BURST];
            let count = self.wheel.due(&self.entries, now, &mut ids[..BURST.min(most - seen)]);
            if count == 0 {
                return true;
            }
            // As in a burst of lookups: one wait for the index, for all of them.
            for &id in &ids[..count] {
                std::hint::black_box(self.index.guess(self.key(id).hash(&self.seed)));
            }
            for &id in &ids[..count] {
                if self.wheel.is_over(&mut self.entries, id) {
                    self.counts.expired += 1;
                    let (key, flow) = self.remove(id);
                    over(key, flow);
                }
            }
            seen += count;
        }
        false
    }

    /// Whether [`Flows::expire`] may find flows to end.
    #[inline]
    pub fn is_due(&self, now: u64) -> bool {
        self.wheel.is_due(now)
    }

    /// Ends a flow whose time is over, if [`Flows::expire`] has not come to it yet.
    #[inline]
    pub fn overdue(&mut self, id: Id, now: u64) -> Option<(F::Key, F)> {
        if self.ends(id) > now { None } else { Some(self.end(id)) }
    }

    #[cold]
    #[inline(never)]
    fn end(&mut self, id: Id) -> (F::Key, F) {
        self.counts.expired += 1;
        self.remove(id)
    }

    /// Ends the flow that would end first, of some that `may_go`.
    pub fn evict(&mut self, mut may_go: impl FnMut(&F) -> bool) -> Option<(F::Key, F)> {
        let id = self.wheel.soonest(&mut self.entries, SEARCH, |flow| may_go(flow))?;
        Some(self.displace(id))
    }

    /// Ends a flow that has to go before its time, for others.
    pub fn displace(&mut self, id: Id) -> (F::Key, F) {
        self.counts.evicted += 1;
        self.remove(id)
    }

    /// How many places there are: each flow has one, and keeps it.
    pub fn places(&self) -> usize {
        self.entries.extent()
    }

    /// The flow in a place, if there is one.
    pub fn in_place(&self, place: usize) -> Option<Id> {
        self.entries.nth(place)
    }

    /// All flows, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &F::Key, &F)> {
        self.entries.iter()
    }

    /// Some of all flows: those in `most` places from place `from` on, 0 being the first, and from
    /// where on there are others. A flow keeps its place.
    pub fn some(
        &self,
        from: usize,
        most: usize,
    ) -> (impl Iterator<Item = (Id, &F::Key, &F)>, Option<usize>) {
        self.entries.some(from, most)
    }

    /// When a flow ends, if nobody says otherwise.
    #[inline]
    pub fn ends(&self, id: Id) -> u64 {
        self.entries.at(id).deadline()
    }
}

/// How many keys are looked up together.
const BURST: usize = 32;
