//! The connections of one family of addresses.

use super::key::{Ends, Family};
use super::mapping::{Direction, Mapped, Shifts};
use super::shelf::Shelf;
use super::tracked::Tracked;
use crate::headers::Headers;
use crate::rules::Timeouts;
use castanet_kit::flow::{Counts, Flows, Id, Slot};

/// Connections, and the packets of a burst that may be of some.
pub(super) struct Side<K: Family> {
    flows: Option<Flows<Tracked<K>>>,
    keys: Vec<K>,
    slots: Vec<Slot>,
}

impl<K: Family> Default for Side<K> {
    fn default() -> Self {
        Side { flows: None, keys: Vec::new(), slots: Vec::new() }
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
        self.flows.as_ref().map_or(0, Flows::len)
    }

    pub(super) fn counts(&self) -> Counts {
        self.flows.as_ref().map(Flows::counts).unwrap_or_default()
    }

    /// The table, if there was ever a connection.
    pub(super) fn table(&self) -> Option<&Flows<Tracked<K>>> {
        self.flows.as_ref()
    }

    /// Each connection, to be changed.
    pub(super) fn each(&mut self, mut with: impl FnMut(&mut Tracked<K>)) {
        let Some(flows) = &mut self.flows else { return };
        let ids: Vec<Id> = flows.iter().map(|(id, _, _)| id).collect();
        ids.into_iter().for_each(|id| with(flows.get_mut(id)));
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        if let Some(flows) = &mut self.flows {
            flows.set_limit(limit);
        }
    }

    /// Forgets connections that are over, looking at `most` at the most. Whether there are no
    /// more of them.
    pub(super) fn forget(&mut self, now: u64, most: usize, shelf: &mut Shelf) -> bool {
        let Some(flows) = &mut self.flows else { return true };
        flows.expire(now, most, |_, tracked| shelf.take(tracked.shifts))
    }

    /// Forgets one that may make room for others; whether there was one.
    pub(super) fn evict(&mut self, shelf: &mut Shelf) -> bool {
        let evicted = self.flows.as_mut().and_then(|flows| flows.evict(Tracked::may_go));
        evicted.inspect(|(_, tracked)| shelf.take(tracked.shifts)).is_some()
    }

    /// Forgets a connection.
    pub(super) fn remove(&mut self, id: Id, shelf: &mut Shelf) {
        if let Some(flows) = &mut self.flows {
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
        let flows = self.flows.get_or_insert_with(|| Flows::new(limit, now));
        flows.insert(key, tracked, until, |_| false).ok()
    }

    /// The connection of these ends.
    pub(super) fn find(&self, ends: &Ends) -> Option<Hit> {
        let (key, swapped) = K::of(ends).ordered();
        let (id, is_second) = self.flows.as_ref()?.find(&key)?;
        Some(Hit { id, is_second, swapped })
    }

    /// Begins a burst.
    pub(super) fn begin(&mut self) {
        self.keys.clear();
    }

    /// The next packet of the burst, and whether its ends are in the other order in its key;
    /// nothing, if it has none.
    #[inline]
    pub(super) fn ask(&mut self, bytes: &[u8], headers: &Headers) -> Option<(u32, bool)> {
        let (key, swapped) = K::of_packet(bytes, headers)?.ordered();
        self.keys.push(key);
        Some((self.keys.len() as u32 - 1, swapped))
    }

    /// Looks for the connections of all packets of the burst.
    pub(super) fn look(&mut self) {
        self.slots.clear();
        self.slots.resize(self.keys.len(), Slot::NONE);
        if let Some(flows) = &self.flows {
            flows.find_all(&self.keys, &mut self.slots);
        }
    }

    /// What was found for a packet of the burst.
    #[inline]
    pub(super) fn looked(&self, (number, swapped): (u32, bool)) -> Option<Hit> {
        let (id, is_second) = self.slots.get(number as usize)?.found()?;
        Some(Hit { id, is_second, swapped })
    }

    /// What was found for a packet of the burst, asked again.
    pub(super) fn look_again(&self, (number, swapped): (u32, bool)) -> Option<Hit> {
        let (id, is_second) = self.flows.as_ref()?.find(self.keys.get(number as usize)?)?;
        Some(Hit { id, is_second, swapped })
    }

    /// What is kept of a connection.
    #[inline]
    pub(super) fn tracked(&self, id: Id) -> Option<&Tracked<K>> {
        self.flows.as_ref().map(|flows| flows.get(id))
    }

    /// What is kept of a connection, if it is not over.
    #[inline]
    pub(super) fn current(&mut self, id: Id, now: u64, shelf: &mut Shelf) -> Option<&Tracked<K>> {
        if self.flows.as_ref()?.ends(id) <= now {
            self.end(id, now, shelf);
            return None;
        }
        self.tracked(id)
    }

    #[cold]
    #[inline(never)]
    fn end(&mut self, id: Id, now: u64, shelf: &mut Shelf) {
        if let Some((_, over)) = self.flows.as_mut().and_then(|flows| flows.overdue(id, now)) {
            shelf.take(over.shifts);
        }
    }

    /// Takes note of a packet of a connection, which lives on.
    #[inline]
    pub(super) fn keep(
        &mut self,
        id: Id,
        direction: Direction,
        (proto, tcp_flags): (u8, u8),
        timeouts: &Timeouts,
        now: u64,
    ) {
        let Some(flows) = &mut self.flows else { return };
        let tracked = flows.get_mut(id);
        tracked.see(direction, tcp_flags);
        let timeout = tracked.timeout(proto, timeouts);
        flows.keep(id, now + timeout);
    }

    /// What becomes of the ends of a packet of a connection, if anything does.
    #[inline]
    pub(super) fn exchanged(&self, hit: Hit) -> Option<K> {
        let flows = self.flows.as_ref()?;
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
        let flows = self.flows.as_ref()?;
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
