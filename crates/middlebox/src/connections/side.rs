//! The connections of one family of addresses.

use super::key::{Ends, Family};
use super::mapping::{Direction, Mapped, Shifts};
use super::shelf::Shelf;
use super::tracked::Tracked;
use crate::rules::Timeouts;
use castanet_kit::flow::{Counts, ExclusiveAccess, Flows, Id, Slot};

/// Connections.
pub(super) struct Side<K: Family>(Option<Flows<Tracked<K>>>);

impl<K: Family> Default for Side<K> {
    fn default() -> Self {
        Side(None)
    }
}

/// A packet of a connection, as this takes note of it.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    pub(super) direction: Direction,
    pub(super) proto: u8,
    pub(super) tcp_flags: u8,
}

impl Noted {
    /// Lets the connection note it; how long that is kept from now on.
    #[inline]
    fn note<K: Family>(self, tracked: &Tracked<K>, timeouts: &Timeouts) -> u64 {
        tracked.see(self.direction, self.tcp_flags);
        tracked.timeout(self.proto, timeouts)
    }
}

/// A connection that was found, by which of its keys and in which order of ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) id: Id,
    pub(super) is_second: bool,
    pub(super) swapped: bool,
}

impl<K: Family> Side<K> {
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, Flows::len)
    }

    pub(super) fn counts(&self) -> Counts {
        self.0.as_ref().map(Flows::counts).unwrap_or_default()
    }

    /// The table, if there was ever a connection.
    pub(super) fn table(&self) -> Option<&Flows<Tracked<K>>> {
        self.0.as_ref()
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        if let Some(flows) = &mut self.0 {
            flows.set_limit(limit);
        }
    }

    /// Forgets connections that are over, looking at `most` at the most. Whether there are no
    /// more of them.
    pub(super) fn forget(&mut self, now: u64, most: usize, shelf: &mut Shelf) -> bool {
        let Some(flows) = &mut self.0 else { return true };
        flows.expire(now, most, |_, tracked| shelf.take(tracked.shifts))
    }

    /// Whether there may be some that are over.
    #[inline]
    pub(super) fn is_due(&self, now: u64) -> bool {
        self.0.as_ref().is_some_and(|flows| flows.is_due(now))
    }

    /// Forgets one that may make room for others; whether there was one.
    pub(super) fn evict(&mut self, shelf: &mut Shelf) -> bool {
        let evicted = self.0.as_mut().and_then(|flows| flows.evict(Tracked::may_go));
        evicted.inspect(|(_, tracked)| shelf.take(tracked.shifts)).is_some()
    }

    /// Whether there is one that may make room for others.
    pub(super) fn may_evict(&self) -> bool {
        self.0.as_ref().is_some_and(|flows| flows.iter().any(|(_, _, tracked)| tracked.may_go()))
    }

    /// Forgets a connection.
    pub(super) fn remove(&mut self, id: Id, shelf: &mut Shelf) {
        if let Some(flows) = &mut self.0 {
            shelf.take(flows.remove(id).1.shifts);
        }
    }

    /// Adds a connection for which there is room; nothing, if it finds none.
    pub(super) fn insert(
        &mut self,
        (key, tracked): (K, Tracked<K>),
        until: u64,
        limit: usize,
        now: u64,
    ) -> Option<Id> {
        let flows = self.0.get_or_insert_with(|| Flows::new(limit, now));
        flows.insert(key, tracked, until, |_| false).ok()
    }

    /// The connection of these ends.
    pub(super) fn find(&self, ends: &Ends) -> Option<Hit> {
        let (key, swapped) = K::of(ends).ordered();
        self.find_key(&key, swapped)
    }

    /// The connection of this key, whose ends are in the other order or not.
    pub(super) fn find_key(&self, key: &K, swapped: bool) -> Option<Hit> {
        let (id, is_second) = self.0.as_ref()?.find(key)?;
        Some(Hit { id, is_second, swapped })
    }

    /// Looks for the connections of keys, each of which gets an answer.
    pub(super) fn find_all(&self, keys: &[K], slots: &mut [Slot]) {
        if let Some(flows) = &self.0 {
            flows.find_all(keys, slots);
        }
    }

    /// What is kept of a connection.
    #[inline]
    pub(super) fn tracked(&self, id: Id) -> Option<&Tracked<K>> {
        self.0.as_ref().map(|flows| flows.get(id))
    }

    /// What is kept of a connection, if it is not over.
    #[inline]
    pub(super) fn current(&self, id: Id, now: u64) -> Option<&Tracked<K>> {
        let flows = self.0.as_ref()?;
        (flows.deadline(id) > now).then(|| flows.get(id))
    }

    /// Forgets a connection that is over.
    pub(super) fn end(&mut self, id: Id, now: u64, shelf: &mut Shelf) {
        if let Some((_, over)) = self.0.as_mut().and_then(|flows| flows.take_expired(id, now)) {
            shelf.take(over.shifts);
        }
    }

    /// Takes note of a packet of a connection, and when that is over if no other comes.
    #[inline]
    pub(super) fn keep(
        &self,
        id: Id,
        packet: Noted,
        timeouts: &Timeouts,
        now: u64,
    ) -> Result<(), ExclusiveAccess> {
        let Some(flows) = &self.0 else { return Ok(()) };
        flows.postpone(id, now + packet.note(flows.get(id), timeouts))
    }

    /// The same for who has them to himself.
    pub(super) fn keep_now(&mut self, id: Id, packet: Noted, timeouts: &Timeouts, now: u64) {
        let Some(flows) = &mut self.0 else { return };
        let timeout = packet.note(flows.get(id), timeouts);
        flows.set_deadline(id, now + timeout);
    }

    /// The ends of the packet that began a connection.
    pub(super) fn beginning(&self, id: Id) -> Option<Ends> {
        let flows = self.0.as_ref()?;
        Some(flows.get(id).ends(flows.key(id)).0.ends())
    }

    /// What becomes of the ends of a packet of a connection, if anything does.
    #[inline]
    pub(super) fn exchanged(&self, hit: Hit) -> Option<K> {
        let flows = self.0.as_ref()?;
        let tracked = flows.get(hit.id);
        let (from, to) = tracked.ends(flows.key(hit.id));
        match (tracked.direction(hit.is_second, hit.swapped), hit.is_second) {
            (Direction::Forward, false) => Some(to),
            (Direction::Reverse, true) => Some(from.reversed()),
            _ => None,
        }
    }

    /// What becomes of a packet of a connection, or of one that quotes such a packet.
    pub(super) fn mapped(&self, hit: Hit, quoted: Option<usize>, shelf: &Shelf) -> Option<Mapped> {
        let flows = self.0.as_ref()?;
        let tracked = flows.get(hit.id);
        let quotes = tracked.direction(hit.is_second, hit.swapped);
        let (from, to) = tracked.ends(flows.key(hit.id));
        let (from, to) = (from.ends(), to.ends());
        let is_mapped = from != to;
        // What is quoted went the other way than what quotes it.
        let (direction, ends) = match (quoted, quotes, hit.is_second) {
            (None, Direction::Forward, false) => (Direction::Forward, (from, to)),
            (None, Direction::Forward, true) => (Direction::Forward, (to, to)),
            (None, Direction::Reverse, true) => {
                (Direction::Reverse, (to.reversed(), from.reversed()))
            }
            (None, Direction::Reverse, false) => {
                (Direction::Reverse, (from.reversed(), from.reversed()))
            }
            (Some(_), Direction::Forward, true) => (Direction::Reverse, (to, from)),
            (Some(_), Direction::Forward, false) => (Direction::Reverse, (from, from)),
            (Some(_), Direction::Reverse, false) => {
                (Direction::Forward, (from.reversed(), to.reversed()))
            }
            (Some(_), Direction::Reverse, true) => {
                (Direction::Forward, (to.reversed(), to.reversed()))
            }
        };
        // Where ends are mapped, numbers are shifted with them.
        let passes = is_mapped && ends.0 == ends.1;
        let shifts = if passes { Shifts::default() } else { shelf.get(tracked.shifts) };
        Some(Mapped { direction, ends, shifts, quoted })
    }
}
