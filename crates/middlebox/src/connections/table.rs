//! The connection table: lookup, creation, expiry.

use super::connection_meter::{ConnectionMeter, octets};
use super::entry::{ConnectionState, ConntrackEntry};
use super::limited::LimitedConnections;
use super::lookup::{BurstLookup, LookupKey};
use super::mapping::{Direction, Mapping, Offsets};
use super::nat_request::NatRequest;
use super::packet_connection::{Hit, LookupResult, PacketConnection};
use super::rule_refs::RuleLists;
use super::seq_offsets::SeqOffsets;
use super::tuple::{QuotedOffset, packet_tuple};
use crate::exit::Exit;
use crate::headers::Headers;
use crate::matcher::{RuleRef, RuleSlots};
use crate::rule_set::{Entry, RuleSet, Timeouts};
use castanet_kit::conntrack::{
    Address, Counts, ExclusiveAccess, Id, Slot, Table, Tuple, Tuple4, TupleKey,
};
use castanet_wire::ipfix::EndReason;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The table of one family.
pub(super) type FamilyTable<A> = Table<ConntrackEntry<TupleKey<A>>>;

/// The connections of both families, up to a common limit, which is that of either table.
#[derive(Default)]
pub(crate) struct Connections {
    pub(super) ip4: FamilyTable<Ipv4Addr>,
    pub(super) ip6: FamilyTable<Ipv6Addr>,
    pub(super) rule_lists: RuleLists,
    pub(super) seq_offsets: SeqOffsets,
    /// Scratch buffer for the rules of a new connection.
    rule_refs: Vec<RuleRef>,
    refused: u64,
    /// The rule set that entries refer to; `None` before the first one.
    rules: Option<Arc<RuleSet>>,
    /// The connections of rules with limits.
    pub(super) limited: LimitedConnections,
    /// The counts of connections, if they are exported.
    pub(super) meter: Option<Box<ConnectionMeter>>,
}

/// A method call on the table of one family.
macro_rules! family {
    ($self:ident, $is_ip6:expr, $($call:tt)*) => {
        match $is_ip6 {
            false => $self.ip4 $($call)*,
            true => $self.ip6 $($call)*,
        }
    };
}

/// Removes a connection of a family by a method call on its table, and releases what it has beside
/// its entry.
macro_rules! release {
    ($self:ident, $is_ip6:expr, $id:expr, $reason:expr, $($call:tt)*) => {
        match $is_ip6 {
            false => {
                let removed = $self.ip4 $($call)*;
                release($self.beside(), $id, removed, $reason);
            }
            true => {
                let removed = $self.ip6 $($call)*;
                release($self.beside(), $id, removed, $reason);
            }
        }
    };
}

/// The parts of connections beside their entries.
pub(super) struct BesideEntries<'c> {
    seq_offsets: &'c mut SeqOffsets,
    meter: &'c mut Option<Box<ConnectionMeter>>,
    rule_lists: &'c RuleLists,
    limited: &'c mut LimitedConnections,
}

/// Frees the offsets of a removed connection, takes it from the limits of its rules, and keeps its record if
/// connections are exported.
fn release<A: Address>(
    BesideEntries { seq_offsets, meter, rule_lists, limited }: BesideEntries,
    id: Id,
    (key, entry): (TupleKey<A>, ConntrackEntry<TupleKey<A>>),
    reason: EndReason,
) {
    seq_offsets.remove(entry.state().offsets);
    if !limited.is_empty() {
        let original = entry.tuples(&key).0.tuple();
        let id = (original.is_ip6(), id);
        limited.remove(rule_lists.rules(&entry.state().rule_refs), &original, id);
    }
    if let Some(meter) = meter {
        let is_over = reason == EndReason::IdleTimeout && entry.state().is_over();
        let reason = if is_over { EndReason::EndOfFlow } else { reason };
        meter.end(id, &key, &entry, reason);
    }
}

impl Connections {
    /// Number of connections.
    pub(crate) fn len(&self) -> usize {
        self.ip4.len() + self.ip6.len()
    }

    /// Event counts.
    pub(crate) fn counts(&self) -> Counts {
        let (ip4, ip6) = (self.ip4.counts(), self.ip6.counts());
        Counts {
            added: ip4.added + ip6.added,
            expired: ip4.expired + ip6.expired,
            evicted: ip4.evicted + ip6.evicted,
            refused: ip4.refused + ip6.refused + self.refused,
        }
    }

    /// Removes all connections.
    fn clear(&mut self) {
        let Connections { ip4, ip6, meter, .. } = self;
        if let Some(meter) = meter {
            let forced = EndReason::ForcedEnd;
            ip4.iter().for_each(|(id, key, entry)| meter.end(id, key, entry, forced));
            ip6.iter().for_each(|(id, key, entry)| meter.end(id, key, entry, forced));
        }
        let (limit, rules, meter) = (ip4.limit(), self.rules.clone(), meter.take());
        *self = Connections { rules, meter, ..Connections::default() };
        self.set_limit(limit);
    }

    /// Switches to another rule set. Entries keep references to the rules that stay. Every worker
    /// calls this; the first call has the effect.
    pub(crate) fn set_rules(&mut self, rules: &Arc<RuleSet>, limit: usize) {
        self.set_limit(limit);
        match self.rules.replace(rules.clone()) {
            Some(before)
                if !before.shares_history_with(rules) || before.flushes < rules.flushes =>
            {
                self.clear();
            }
            // A worker that lags behind calls with an older rule set.
            Some(before) if before.flushes > rules.flushes => self.rules = Some(before),
            _ => {}
        }
    }

    /// Sets the maximum number of connections.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.ip4.set_limit(limit);
        self.ip6.set_limit(limit);
    }

    /// Whether expired connections may exist.
    #[inline]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.ip4.is_due(now) || self.ip6.is_due(now)
    }

    /// Removes expired connections, looking at `most` entries of each family. Returns whether none
    /// is left.
    pub(crate) fn expire(&mut self, now: u64, most: usize) -> bool {
        let Connections { ip4, ip6, seq_offsets, meter, rule_lists, limited, .. } = self;
        let idle = EndReason::IdleTimeout;
        let is_done = ip4.expire(now, most, |id, key, entry| {
            let beside = BesideEntries { seq_offsets, meter, rule_lists, limited };
            release(beside, id, (key, entry), idle);
        });
        ip6.expire(now, most, |id, key, entry| {
            let beside = BesideEntries { seq_offsets, meter, rule_lists, limited };
            release(beside, id, (key, entry), idle);
        }) && is_done
    }

    /// The parts of connections beside their entries.
    fn beside(&mut self) -> BesideEntries<'_> {
        let Connections { seq_offsets, meter, rule_lists, limited, .. } = self;
        BesideEntries { seq_offsets, meter, rule_lists, limited }
    }

    /// Returns the state of a connection.
    #[inline]
    pub(crate) fn state(&self, connection: &PacketConnection) -> &ConnectionState {
        family!(self, connection.hit.is_ip6, .get(connection.hit.id).state())
    }

    /// Returns the rules of a connection that still exist, with their slots.
    #[inline]
    pub(crate) fn rules<'a>(
        &'a self,
        connection: &PacketConnection,
        slots: &'a RuleSlots,
    ) -> impl Iterator<Item = (u32, &'a Arc<Entry>)> + Clone + 'a {
        slots.resolve_all(self.rule_refs(self.state(connection)))
    }

    /// Returns the references to a connection's rules, removed ones included.
    #[inline]
    pub(crate) fn rule_refs<'a>(&'a self, state: &'a ConnectionState) -> &'a [RuleRef] {
        self.rule_lists.rules(&state.rule_refs)
    }

    /// Whether packets of the connection are rewritten.
    #[inline]
    pub(crate) fn is_translated(&self, connection: &PacketConnection) -> bool {
        self.state(connection).is_translated()
    }

    /// Returns the connection of a packet of the burst, from the batch lookup.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        (batch, key): (&BurstLookup, Option<LookupKey>),
        bytes: &[u8],
        headers: &Headers,
        now: u64,
    ) -> LookupResult {
        let Some(key) = key else { return self.find_unbatched(bytes, headers, now) };
        let Some(hit) = batch.hit(key) else { return LookupResult::None };
        self.live_connection(hit, None, now)
    }

    /// Looks the packet up again, with exclusive access, and removes its connection if that has
    /// expired.
    pub(crate) fn find_exclusive(
        &mut self,
        (batch, key): (&BurstLookup, Option<LookupKey>),
        bytes: &[u8],
        headers: &Headers,
        now: u64,
    ) -> Option<PacketConnection> {
        let (hit, quoted) = match key {
            Some(key) => (batch.look_up_again(key, self)?, None),
            None => self.find_tuple(bytes, headers)?,
        };
        if let LookupResult::Connection(connection) = self.live_connection(hit, quoted, now) {
            return Some(connection);
        }
        release!(self, hit.is_ip6, hit.id, EndReason::IdleTimeout, .take_expired(hit.id, now)?);
        None
    }

    /// Looks up the tuple of a packet, or that of the packet that it quotes.
    fn find_tuple(&self, bytes: &[u8], headers: &Headers) -> Option<(Hit, QuotedOffset)> {
        let (tuple, quoted) = packet_tuple(bytes, headers)?;
        Some((self.hit(&tuple)?, quoted))
    }

    pub(super) fn hit(&self, tuple: &Tuple) -> Option<Hit> {
        fn find<A: Address>(table: &FamilyTable<A>, tuple: &Tuple) -> (Slot, bool) {
            let (key, swapped) = TupleKey::of_tuple(tuple).ordered();
            (table.find_slot(&key), swapped)
        }
        let is_ip6 = tuple.is_ip6();
        let (slot, swapped) = if is_ip6 { find(&self.ip6, tuple) } else { find(&self.ip4, tuple) };
        Hit::new(slot, swapped, is_ip6)
    }

    #[inline(never)]
    fn find_unbatched(&self, bytes: &[u8], headers: &Headers, now: u64) -> LookupResult {
        let found = if self.len() == 0 { None } else { self.find_tuple(bytes, headers) };
        found.map_or(LookupResult::None, |(hit, quoted)| self.live_connection(hit, quoted, now))
    }

    /// Returns a connection that has not expired.
    #[inline(always)]
    fn live_connection(&self, hit: Hit, quoted: QuotedOffset, now: u64) -> LookupResult {
        let (deadline, direction) = match hit.is_ip6 {
            false => hit.deadline_and_direction(self.ip4.flow(hit.id)),
            true => hit.deadline_and_direction(self.ip6.flow(hit.id)),
        };
        if deadline <= now {
            return LookupResult::NeedsWrite;
        }
        // The quoted packet travelled in the opposite direction of the error.
        let direction = if quoted.is_some() { direction.opposite() } else { direction };
        LookupResult::Connection(PacketConnection { hit, quoted, direction })
    }

    /// Records a packet and extends the timeout of its connection.
    #[inline]
    pub(crate) fn refresh(
        &self,
        connection: &PacketConnection,
        bytes: &[u8],
        headers: &Headers,
        timeouts: &Timeouts,
        now: u64,
    ) -> Result<(), ExclusiveAccess> {
        let seen = (bytes, headers);
        let Hit { id, is_ip6, .. } = connection.hit;
        match is_ip6 {
            false => connection.refresh(self.ip4.flow(id), seen, timeouts, now)?,
            true => connection.refresh(self.ip6.flow(id), seen, timeouts, now)?,
        }
        if connection.quoted.is_none() {
            self.count(connection, || octets(bytes, headers), now);
        }
        Ok(())
    }

    /// Counts a packet of a connection, if connections are exported.
    #[inline]
    fn count(&self, connection: &PacketConnection, octets: impl FnOnce() -> usize, now: u64) {
        if let Some(meter) = &self.meter {
            let Hit { id, is_ip6, .. } = connection.hit;
            meter.count((id, is_ip6), connection.direction, octets(), now);
        }
    }

    /// As [`Connections::refresh`], with exclusive access.
    pub(crate) fn refresh_exclusive(
        &mut self,
        connection: &PacketConnection,
        bytes: &[u8],
        headers: &Headers,
        timeouts: &Timeouts,
        now: u64,
    ) {
        let state = self.state(connection);
        if let Some(until) = connection.record(state, (bytes, headers), timeouts, now) {
            family!(self, connection.hit.is_ip6, .set_deadline(connection.hit.id, until).state());
            self.count(connection, || octets(bytes, headers), now);
        }
    }

    /// Removes a connection.
    pub(crate) fn remove(&mut self, connection: &PacketConnection) {
        self.remove_hit(connection.hit);
    }

    /// Removes the connection that a lookup has found.
    pub(super) fn remove_hit(&mut self, Hit { id, is_ip6, .. }: Hit) {
        release!(self, is_ip6, id, EndReason::ForcedEnd, .remove(id));
    }

    /// Removes the connection with this tuple, original or translated, of either direction; whether
    /// there is one.
    pub(crate) fn delete(&mut self, tuple: &Tuple) -> bool {
        let hit = self.hit(tuple);
        hit.into_iter().for_each(|hit| self.remove_hit(hit));
        hit.is_some()
    }

    /// Returns the original tuple and the translated one, both in the original direction.
    pub(super) fn tuples(&self, connection: &PacketConnection) -> (Tuple, Tuple) {
        fn tuples<A: Address>(table: &FamilyTable<A>, id: Id) -> (Tuple, Tuple) {
            let (from, to) = table.get(id).tuples(table.key(id));
            (from.tuple(), to.tuple())
        }
        let Hit { id, is_ip6, .. } = connection.hit;
        if is_ip6 { tuples(&self.ip6, id) } else { tuples(&self.ip4, id) }
    }

    /// Returns the original tuple.
    pub(crate) fn original_tuple(&self, connection: &PacketConnection) -> Tuple {
        self.tuples(connection).0
    }

    /// Returns the mapping of a packet.
    pub(crate) fn mapping(&self, connection: &PacketConnection) -> Mapping {
        let PacketConnection { hit, direction, .. } = *connection;
        let (from, to) = self.tuples(connection);
        let (seen, other) = if hit.is_second { (to, from) } else { (from, to) };
        let is_rewritten = connection.is_rewritten();
        // A quoted packet travelled in the opposite direction of the error.
        let is_turned = (direction == Direction::Reply) != connection.quoted.is_some();
        let tuples = (seen, if is_rewritten { other } else { seen });
        let tuples = match is_turned {
            true => (tuples.0.reversed(), tuples.1.reversed()),
            false => tuples,
        };
        // In a translated connection only translated packets get offsets.
        let passes = from != to && !is_rewritten;
        let offsets = self.seq_offsets.get(self.state(connection).offsets);
        let offsets = if passes { Offsets::default() } else { offsets };
        let quoted = connection.quoted.map(|at| at.get() as usize);
        Mapping { direction, tuples, offsets, quoted }
    }

    /// Returns the tuple rewrite of a packet, if that is all that changes.
    #[inline]
    pub(crate) fn tuple_rewrite(
        &self,
        connection: &PacketConnection,
        state: &ConnectionState,
    ) -> TupleRewrite {
        if !state.is_translated() {
            return TupleRewrite::None;
        }
        if connection.hit.is_ip6 || connection.quoted.is_some() || state.offsets.is_some() {
            return TupleRewrite::Full;
        }
        if !connection.is_rewritten() {
            return TupleRewrite::None;
        }
        let id = connection.hit.id;
        let (from, to) = self.ip4.get(id).tuples(self.ip4.key(id));
        match connection.direction {
            Direction::Original => TupleRewrite::Tuple4(from, to),
            Direction::Reply => TupleRewrite::Tuple4(to.reversed(), from.reversed()),
        }
    }

    /// Creates the connection of a packet by the stateful rules that matched it. `None` for packets
    /// that cannot create a connection; an error if the table is full or no port is free.
    pub(crate) fn create<'r>(
        &mut self,
        seen: (&[u8], &Headers),
        entries: impl Iterator<Item = &'r Arc<Entry>> + Clone,
        timeouts: &Timeouts,
        random: impl FnMut() -> u64,
        now: u64,
    ) -> Result<Option<PacketConnection>, Exit> {
        let Some(proposal) = self.propose(seen, entries.clone(), random)? else { return Ok(None) };
        self.insert(proposal, entries, timeouts, now).map(Some)
    }

    /// Plans the connection of a packet by the stateful rules that matched it. `None` for packets
    /// that cannot create a connection; an error if no port is free.
    pub(crate) fn propose<'r>(
        &self,
        (bytes, headers): (&[u8], &Headers),
        entries: impl Iterator<Item = &'r Arc<Entry>>,
        random: impl FnMut() -> u64,
    ) -> Result<Option<Proposal>, Exit> {
        let Some((ends, None)) = packet_tuple(bytes, headers) else { return Ok(None) };
        if headers.is_later_fragment {
            return Ok(None);
        }
        let mut request = NatRequest::new(ends, random);
        entries.for_each(|entry| request.add_plan(&entry.plan));
        if !request.allocate(|ends| self.hit(ends).is_some()) {
            return Err(Exit::NoPort);
        }
        let (to, offsets, flags) = (request.to, request.offsets, headers.tcp_flags(bytes));
        Ok(Some(Proposal { from: ends, to, offsets, flags, octets: octets(bytes, headers) }))
    }

    /// Inserts a planned connection with these rules; an error if the table is full.
    pub(crate) fn insert<'r>(
        &mut self,
        Proposal { from, to, offsets, flags, octets }: Proposal,
        entries: impl Iterator<Item = &'r Arc<Entry>> + Clone,
        timeouts: &Timeouts,
        now: u64,
    ) -> Result<PacketConnection, Exit> {
        if !self.make_room(from.is_ip6()) {
            self.refused += 1;
            return Err(Exit::Full);
        }
        self.rule_refs.clear();
        self.rule_refs.extend(entries.clone().map(|entry| RuleRef::new(entry)));
        let rule_refs = self.rule_lists.intern(&self.rule_refs);
        let offsets = self.seq_offsets.insert(offsets);
        let state = ConnectionState::new(rule_refs, offsets);
        let until = now + state.record(Direction::Original, from.proto, flags, timeouts);
        let hit = match from.is_ip6() {
            false => ConntrackEntry::insert(&mut self.ip4, (&from, &to), state, until, now),
            true => ConntrackEntry::insert(&mut self.ip6, (&from, &to), state, until, now),
        };
        let Some(hit) = hit else {
            self.seq_offsets.remove(offsets);
            return Err(Exit::Full);
        };
        entries.for_each(|entry| self.limit_by(entry, &from, hit, now));
        let direction = Direction::Original;
        let connection = PacketConnection { hit, quoted: None, direction };
        self.reserve_counters();
        self.count(&connection, || octets, now);
        Ok(connection)
    }

    /// Whether one more connection has room, if need be by eviction.
    pub(crate) fn has_room(&self) -> bool {
        self.len() < self.ip4.limit()
            || self.ip4.iter().any(|(.., entry)| entry.state().is_evictable())
            || self.ip6.iter().any(|(.., entry)| entry.state().is_evictable())
    }

    /// Makes room for one more connection: evicts one of the same family, or else of the other.
    pub(super) fn make_room(&mut self, is_ip6: bool) -> bool {
        self.len() < self.ip4.limit() || self.evict(is_ip6) || self.evict(!is_ip6)
    }

    /// Evicts a connection of one family; returns whether there was one.
    fn evict(&mut self, is_ip6: bool) -> bool {
        let may_go = |state: &ConnectionState| state.is_evictable();
        let id = match is_ip6 {
            false => self.ip4.find_evictable(|it| may_go(it.state())),
            true => self.ip6.find_evictable(|it| may_go(it.state())),
        };
        let Some(id) = id else { return false };
        release!(self, is_ip6, id, EndReason::LackOfResources, .evict_id(id));
        true
    }
}

/// A planned connection: its original and its translated tuple.
pub(crate) struct Proposal {
    from: Tuple,
    to: Tuple,
    offsets: Offsets,
    flags: u8,
    octets: usize,
}

/// Rewrite of the tuple of a packet.
pub(crate) enum TupleRewrite {
    /// The packet stays as it is.
    None,
    /// A packet with the first tuple gets the second, and nothing else changes.
    Tuple4(Tuple4, Tuple4),
    /// The rewrite is not a plain exchange of the tuple.
    Full,
}
