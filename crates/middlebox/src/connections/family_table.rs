//! The connections of one address family.

use super::entry::ConntrackEntry;
use super::mapping::{Direction, Mapping, Offsets};
use super::seq_offsets::SeqOffsets;
use super::tuple::{Family, Tuple};
use crate::rule_set::Timeouts;
use castanet_kit::flow::{Counts, ExclusiveAccess, Flows, Id, Slot};

/// Table of one family, allocated with the first connection.
pub(super) struct FamilyTable<K: Family>(Option<Flows<ConntrackEntry<K>>>);

impl<K: Family> Default for FamilyTable<K> {
    fn default() -> Self {
        FamilyTable(None)
    }
}

/// The properties of a packet that its connection records.
#[derive(Clone, Copy)]
pub(super) struct PacketSummary {
    pub(super) direction: Direction,
    pub(super) proto: u8,
    pub(super) tcp_flags: u8,
}

impl PacketSummary {
    /// Records the packet in its entry; returns the timeout from now on.
    #[inline]
    fn record<K: Family>(self, entry: &ConntrackEntry<K>, timeouts: &Timeouts) -> u64 {
        entry.record(self.direction, self.tcp_flags);
        entry.timeout(self.proto, timeouts)
    }
}

/// Result of a lookup: the entry, the key by which it was found, and the order of the ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) id: Id,
    pub(super) is_second: bool,
    pub(super) swapped: bool,
}

impl<K: Family> FamilyTable<K> {
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, Flows::len)
    }

    pub(super) fn counts(&self) -> Counts {
        self.0.as_ref().map(Flows::counts).unwrap_or_default()
    }

    /// Returns the table, if a connection was ever created.
    pub(super) fn table(&self) -> Option<&Flows<ConntrackEntry<K>>> {
        self.0.as_ref()
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        if let Some(flows) = &mut self.0 {
            flows.set_limit(limit);
        }
    }

    /// Removes expired connections, looking at `most` entries. Returns whether none is left.
    pub(super) fn expire(&mut self, now: u64, most: usize, seq_offsets: &mut SeqOffsets) -> bool {
        let Some(flows) = &mut self.0 else { return true };
        flows.expire(now, most, |_, entry| seq_offsets.remove(entry.offsets))
    }

    /// Whether expired connections may exist.
    #[inline]
    pub(super) fn is_due(&self, now: u64) -> bool {
        self.0.as_ref().is_some_and(|flows| flows.is_due(now))
    }

    /// Evicts one connection; returns whether there was one.
    pub(super) fn evict(&mut self, seq_offsets: &mut SeqOffsets) -> bool {
        let evicted = self.0.as_mut().and_then(|flows| flows.evict(ConntrackEntry::is_evictable));
        evicted.inspect(|(_, entry)| seq_offsets.remove(entry.offsets)).is_some()
    }

    /// Whether a connection may be evicted.
    pub(super) fn may_evict(&self) -> bool {
        self.0.as_ref().is_some_and(|flows| flows.iter().any(|(_, _, entry)| entry.is_evictable()))
    }

    /// Removes a connection.
    pub(super) fn remove(&mut self, id: Id, seq_offsets: &mut SeqOffsets) {
        if let Some(flows) = &mut self.0 {
            seq_offsets.remove(flows.remove(id).1.offsets);
        }
    }

    /// Inserts a connection; `None` if there is no room.
    pub(super) fn insert(
        &mut self,
        (key, entry): (K, ConntrackEntry<K>),
        until: u64,
        limit: usize,
        now: u64,
    ) -> Option<Id> {
        let flows = self.0.get_or_insert_with(|| Flows::new(limit, now));
        flows.insert(key, entry, until, |_| false).ok()
    }

    /// Looks up a tuple.
    pub(super) fn find(&self, tuple: &Tuple) -> Option<Hit> {
        let (key, swapped) = K::from_tuple(tuple).ordered();
        self.find_key(&key, swapped)
    }

    /// Looks up a key; `swapped` says whether its ends were exchanged.
    pub(super) fn find_key(&self, key: &K, swapped: bool) -> Option<Hit> {
        let (id, is_second) = self.0.as_ref()?.find(key)?;
        Some(Hit { id, is_second, swapped })
    }

    /// Looks up many keys, with an answer for each.
    pub(super) fn find_all(&self, keys: &[K], slots: &mut [Slot]) {
        if let Some(flows) = &self.0 {
            flows.find_all(keys, slots);
        }
    }

    /// Returns an entry.
    #[inline]
    pub(super) fn entry(&self, id: Id) -> Option<&ConntrackEntry<K>> {
        self.0.as_ref().map(|flows| flows.get(id))
    }

    /// Returns an entry that has not expired.
    #[inline]
    pub(super) fn live_entry(&self, id: Id, now: u64) -> Option<&ConntrackEntry<K>> {
        let flows = self.0.as_ref()?;
        (flows.deadline(id) > now).then(|| flows.get(id))
    }

    /// Removes a connection if it has expired.
    pub(super) fn expire_one(&mut self, id: Id, now: u64, seq_offsets: &mut SeqOffsets) {
        if let Some((_, over)) = self.0.as_mut().and_then(|flows| flows.take_expired(id, now)) {
            seq_offsets.remove(over.offsets);
        }
    }

    /// Records a packet and extends the timeout.
    #[inline]
    pub(super) fn refresh(
        &self,
        id: Id,
        packet: PacketSummary,
        timeouts: &Timeouts,
        now: u64,
    ) -> Result<(), ExclusiveAccess> {
        let Some(flows) = &self.0 else { return Ok(()) };
        flows.postpone(id, now + packet.record(flows.get(id), timeouts))
    }

    /// As `refresh`, with exclusive access.
    pub(super) fn refresh_exclusive(
        &mut self,
        id: Id,
        packet: PacketSummary,
        timeouts: &Timeouts,
        now: u64,
    ) {
        let Some(flows) = &mut self.0 else { return };
        let timeout = packet.record(flows.get(id), timeouts);
        flows.set_deadline(id, now + timeout);
    }

    /// Returns the original tuple.
    pub(super) fn original_tuple(&self, id: Id) -> Option<Tuple> {
        let flows = self.0.as_ref()?;
        Some(flows.get(id).tuples(flows.key(id)).0.tuple())
    }

    /// Returns the tuple that a packet gets, if it is translated.
    #[inline]
    pub(super) fn tuple_rewrite(&self, hit: Hit) -> Option<K> {
        let flows = self.0.as_ref()?;
        let entry = flows.get(hit.id);
        let (from, to) = entry.tuples(flows.key(hit.id));
        match (entry.direction(hit.is_second, hit.swapped), hit.is_second) {
            (Direction::Original, false) => Some(to),
            (Direction::Reply, true) => Some(from.reversed()),
            _ => None,
        }
    }

    /// Returns the mapping of a packet, or of an ICMP error that quotes such a packet.
    pub(super) fn mapping(
        &self,
        hit: Hit,
        quoted: Option<usize>,
        seq_offsets: &SeqOffsets,
    ) -> Option<Mapping> {
        let flows = self.0.as_ref()?;
        let entry = flows.get(hit.id);
        let quotes = entry.direction(hit.is_second, hit.swapped);
        let (from, to) = entry.tuples(flows.key(hit.id));
        let (from, to) = (from.tuple(), to.tuple());
        let is_mapped = from != to;
        // The quoted packet travelled in the opposite direction of the error.
        let (direction, tuples) = match (quoted, quotes, hit.is_second) {
            (None, Direction::Original, false) => (Direction::Original, (from, to)),
            (None, Direction::Original, true) => (Direction::Original, (to, to)),
            (None, Direction::Reply, true) => (Direction::Reply, (to.reversed(), from.reversed())),
            (None, Direction::Reply, false) => {
                (Direction::Reply, (from.reversed(), from.reversed()))
            }
            (Some(_), Direction::Original, true) => (Direction::Reply, (to, from)),
            (Some(_), Direction::Original, false) => (Direction::Reply, (from, from)),
            (Some(_), Direction::Reply, false) => {
                (Direction::Original, (from.reversed(), to.reversed()))
            }
            (Some(_), Direction::Reply, true) => {
                (Direction::Original, (to.reversed(), to.reversed()))
            }
        };
        // In a translated connection only translated packets get offsets.
        let passes = is_mapped && tuples.0 == tuples.1;
        let offsets = if passes { Offsets::default() } else { seq_offsets.get(entry.offsets) };
        Some(Mapping { direction, tuples, offsets, quoted })
    }
}
