//! The connection table: lookup, creation, expiry.

use super::entry::ConntrackEntry;
use super::family_table::{FamilyTable, Hit, PacketSummary};
use super::lookup::{LookupBatch, LookupKey};
use super::mapping::{Direction, Mapping, Offsets};
use super::nat_request::NatRequest;
use super::rule_refs::{RuleLists, RuleRefs};
use super::seq_offsets::SeqOffsets;
use super::tuple::{Family, Tuple};
use crate::field::Layer;
use crate::headers::Headers;
use crate::matcher::{RuleRef, RuleSlots};
use crate::rule_set::{Entry, RuleSet, Timeouts};
use castanet_kit::flow::{Counts, ExclusiveAccess, Id, Tuple4, Tuple6};
use castanet_wire::{Icmp, icmp, icmp6};
use std::num::NonZeroU32;
use std::sync::Arc;

/// The connections of both families, up to a common limit.
pub(crate) struct Connections {
    pub(super) ip4: FamilyTable<Tuple4>,
    pub(super) ip6: FamilyTable<Tuple6>,
    pub(super) rule_lists: RuleLists,
    pub(super) seq_offsets: SeqOffsets,
    /// Scratch buffer for the rules of a new connection.
    rule_refs: Vec<RuleRef>,
    limit: usize,
    refused: u64,
    /// The rule set that entries refer to; `None` before the first one.
    rules: Option<Arc<RuleSet>>,
}

impl Default for Connections {
    fn default() -> Self {
        Connections {
            ip4: FamilyTable::default(),
            ip6: FamilyTable::default(),
            rule_lists: RuleLists::default(),
            seq_offsets: SeqOffsets::default(),
            rule_refs: Vec::new(),
            limit: usize::MAX,
            refused: 0,
            rules: None,
        }
    }
}

/// Offset of the quoted packet in an ICMP error.
type QuotedOffset = Option<NonZeroU32>;

/// The connection of a packet and its direction. It stays at 16 bytes because it is passed by
/// value: a larger one goes through memory and stalls on store forwarding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketConnection {
    hit: Hit,
    quoted: QuotedOffset,
    is_ip6: bool,
    /// Direction of the packet.
    pub(crate) direction: Direction,
    /// Whether the packet has ports and is no fragment.
    has_ports: bool,
}

const _: () = assert!(size_of::<Option<PacketConnection>>() == 16);

/// Result of a lookup under shared access.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LookupResult {
    /// The packet belongs to this connection.
    Connection(PacketConnection),
    /// The packet belongs to no connection.
    None,
    /// The answer needs exclusive access.
    NeedsWrite,
}

const _: () = assert!(size_of::<LookupResult>() == 16);

/// Result of creating a connection.
pub(crate) enum CreateResult {
    /// The connection was created.
    Created(PacketConnection),
    /// The table is full.
    Full,
    /// No port is free.
    NoPort,
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
        let (limit, rules) = (self.limit, self.rules.clone());
        *self = Connections { limit, rules, ..Connections::default() };
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
        self.limit = limit;
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
        let ip4 = self.ip4.expire(now, most, &mut self.seq_offsets);
        let ip6 = self.ip6.expire(now, most, &mut self.seq_offsets);
        ip4 && ip6
    }

    /// Returns the rules of an entry that still exist, with their slots.
    pub(super) fn rules_of<'a>(
        &'a self,
        rule_refs: &'a RuleRefs,
        slots: &'a RuleSlots,
    ) -> impl Iterator<Item = (u32, &'a Arc<Entry>)> + Clone + 'a {
        slots.resolve_all(self.rule_lists.rules(rule_refs))
    }

    /// Returns the rules of a connection that still exist, with their slots.
    #[inline]
    pub(crate) fn rules<'a>(
        &'a self,
        connection: &PacketConnection,
        slots: &'a RuleSlots,
    ) -> impl Iterator<Item = (u32, &'a Arc<Entry>)> + Clone + 'a {
        slots.resolve_all(self.rule_refs(connection))
    }

    /// Returns the references to a connection's rules, removed ones included.
    #[inline]
    pub(crate) fn rule_refs(&self, connection: &PacketConnection) -> &[RuleRef] {
        let rule_refs = match connection.is_ip6 {
            false => self.ip4.entry(connection.hit.id).map(|it| &it.rule_refs),
            true => self.ip6.entry(connection.hit.id).map(|it| &it.rule_refs),
        };
        rule_refs.map_or(&[], |rule_refs| self.rule_lists.rules(rule_refs))
    }

    /// Whether packets of the connection are rewritten.
    #[inline]
    pub(crate) fn is_translated(&self, connection: &PacketConnection) -> bool {
        let changes = match connection.is_ip6 {
            false => self.ip4.entry(connection.hit.id).map(ConntrackEntry::is_translated),
            true => self.ip6.entry(connection.hit.id).map(ConntrackEntry::is_translated),
        };
        changes.unwrap_or_default()
    }

    /// Returns the connection of a packet of the burst, from the batch lookup.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        (batch, key): (&LookupBatch, LookupKey),
        bytes: &[u8],
        headers: &Headers,
        now: u64,
    ) -> LookupResult {
        let (is_ip6, hit) = match key {
            LookupKey::Unbatched => return self.find_unbatched(bytes, headers, now),
            LookupKey::Ip4(at) => (false, batch.ip4.hit(at)),
            LookupKey::Ip6(at) => (true, batch.ip6.hit(at)),
        };
        let Some(hit) = hit else { return LookupResult::None };
        self.live_connection(is_ip6, hit, (None, true), now)
    }

    /// Looks the packet up again, with exclusive access, and removes its connection if that has
    /// expired.
    pub(crate) fn find_exclusive(
        &mut self,
        (batch, key): (&LookupBatch, LookupKey),
        bytes: &[u8],
        headers: &Headers,
        now: u64,
    ) -> Option<PacketConnection> {
        let (is_ip6, hit, packet) = match key {
            LookupKey::Unbatched => {
                let (ends, quoted) = packet_tuple(bytes, headers)?;
                (ends.is_ip6, self.find_tuple(&ends)?, (quoted, false))
            }
            LookupKey::Ip4(at) => (false, batch.ip4.look_up_again(at, &self.ip4)?, (None, true)),
            LookupKey::Ip6(at) => (true, batch.ip6.look_up_again(at, &self.ip6)?, (None, true)),
        };
        if let LookupResult::Connection(connection) = self.live_connection(is_ip6, hit, packet, now)
        {
            return Some(connection);
        }
        match is_ip6 {
            false => self.ip4.expire_one(hit.id, now, &mut self.seq_offsets),
            true => self.ip6.expire_one(hit.id, now, &mut self.seq_offsets),
        }
        None
    }

    fn find_tuple(&self, ends: &Tuple) -> Option<Hit> {
        match ends.is_ip6 {
            false => self.ip4.find(ends),
            true => self.ip6.find(ends),
        }
    }

    #[inline(never)]
    fn find_unbatched(&self, bytes: &[u8], headers: &Headers, now: u64) -> LookupResult {
        if self.len() == 0 {
            return LookupResult::None;
        }
        let Some((ends, quoted)) = packet_tuple(bytes, headers) else { return LookupResult::None };
        let Some(hit) = self.find_tuple(&ends) else { return LookupResult::None };
        self.live_connection(ends.is_ip6, hit, (quoted, false), now)
    }

    /// Returns a connection that has not expired.
    #[inline(always)]
    fn live_connection(
        &self,
        is_ip6: bool,
        hit: Hit,
        packet: (QuotedOffset, bool),
        now: u64,
    ) -> LookupResult {
        match is_ip6 {
            false => match self.ip4.live_entry(hit.id, now) {
                Some(entry) => LookupResult::Connection(PacketConnection::new(entry, hit, packet)),
                None => LookupResult::NeedsWrite,
            },
            true => match self.ip6.live_entry(hit.id, now) {
                Some(entry) => LookupResult::Connection(PacketConnection::new(entry, hit, packet)),
                None => LookupResult::NeedsWrite,
            },
        }
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
        // An ICMP error does not extend the timeout.
        if connection.quoted.is_some() {
            return Ok(());
        }
        let packet = connection.summary(bytes, headers);
        match connection.is_ip6 {
            false => self.ip4.refresh(connection.hit.id, packet, timeouts, now),
            true => self.ip6.refresh(connection.hit.id, packet, timeouts, now),
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
        if connection.quoted.is_some() {
            return;
        }
        let packet = connection.summary(bytes, headers);
        match connection.is_ip6 {
            false => self.ip4.refresh_exclusive(connection.hit.id, packet, timeouts, now),
            true => self.ip6.refresh_exclusive(connection.hit.id, packet, timeouts, now),
        }
    }

    /// Removes a connection.
    pub(crate) fn remove(&mut self, connection: &PacketConnection) {
        match connection.is_ip6 {
            false => self.ip4.remove(connection.hit.id, &mut self.seq_offsets),
            true => self.ip6.remove(connection.hit.id, &mut self.seq_offsets),
        }
    }

    /// Returns the original tuple.
    pub(crate) fn original_tuple(&self, connection: &PacketConnection) -> Option<Tuple> {
        match connection.is_ip6 {
            false => self.ip4.original_tuple(connection.hit.id),
            true => self.ip6.original_tuple(connection.hit.id),
        }
    }

    /// Returns the mapping of a packet.
    pub(crate) fn mapping(&self, connection: &PacketConnection) -> Option<Mapping> {
        match connection.is_ip6 {
            false => self.ip4.mapping(connection.hit, connection.quoted(), &self.seq_offsets),
            true => self.ip6.mapping(connection.hit, connection.quoted(), &self.seq_offsets),
        }
    }

    /// Returns the tuple rewrite of a packet, if that is all that changes.
    #[inline]
    pub(crate) fn tuple_rewrite(&self, connection: &PacketConnection) -> TupleRewrite {
        if !self.is_translated(connection) {
            return TupleRewrite::None;
        }
        if connection.is_ip6 || !connection.has_ports {
            return TupleRewrite::Full;
        }
        match self.ip4.entry(connection.hit.id) {
            Some(entry) if entry.offsets.is_none() => self
                .ip4
                .tuple_rewrite(connection.hit)
                .map_or(TupleRewrite::None, TupleRewrite::Tuple4),
            _ => TupleRewrite::Full,
        }
    }

    /// Creates the connection of a packet by the stateful rules that matched it. `None` for packets
    /// that cannot create a connection.
    pub(crate) fn create<'r>(
        &mut self,
        seen: (&[u8], &Headers),
        entries: impl Iterator<Item = &'r Arc<Entry>> + Clone,
        timeouts: &Timeouts,
        random: impl FnMut() -> u64,
        now: u64,
    ) -> Option<CreateResult> {
        Some(match self.propose(seen, entries.clone(), random)? {
            Some(proposal) => self.insert(proposal, entries, timeouts, now),
            None => CreateResult::NoPort,
        })
    }

    /// Plans the connection of a packet by the stateful rules that matched it. `None` for packets
    /// that cannot create a connection, `Some(None)` if no port is free.
    pub(crate) fn propose<'r>(
        &self,
        (bytes, headers): (&[u8], &Headers),
        entries: impl Iterator<Item = &'r Arc<Entry>>,
        random: impl FnMut() -> u64,
    ) -> Option<Option<Proposal>> {
        let (ends, quoted) = packet_tuple(bytes, headers)?;
        if quoted.is_some() || headers.is_later_fragment {
            return None;
        }
        let mut request = NatRequest::new(ends, random);
        entries.for_each(|entry| request.add_plan(&entry.plan));
        let is_allocated = request.allocate(|ends| self.find_tuple(ends).is_some());
        let (to, offsets, flags) = (request.to, request.offsets, headers.tcp_flags(bytes));
        Some(is_allocated.then_some(Proposal { from: ends, to, offsets, flags }))
    }

    /// Inserts a planned connection with these rules.
    pub(crate) fn insert<'r>(
        &mut self,
        Proposal { from, to, offsets, flags }: Proposal,
        entries: impl Iterator<Item = &'r Arc<Entry>>,
        timeouts: &Timeouts,
        now: u64,
    ) -> CreateResult {
        if !self.make_room(from.is_ip6) {
            self.refused += 1;
            return CreateResult::Full;
        }
        self.rule_refs.clear();
        self.rule_refs.extend(entries.map(|entry| RuleRef::new(entry)));
        let Connections { ip4, ip6, seq_offsets, limit, rule_lists, rule_refs, .. } = self;
        let offsets = seq_offsets.insert(offsets);
        let entry = NewEntry { from, to, rule_refs: rule_lists.intern(rule_refs), offsets, flags };
        let connection = match from.is_ip6 {
            false => entry.insert(ip4, timeouts, *limit, now),
            true => entry.insert(ip6, timeouts, *limit, now),
        };
        let Some(connection) = connection else {
            seq_offsets.remove(offsets);
            return CreateResult::Full;
        };
        CreateResult::Created(connection)
    }

    /// Whether one more connection has room, if need be by eviction.
    pub(crate) fn has_room(&self) -> bool {
        self.len() < self.limit || self.ip4.may_evict() || self.ip6.may_evict()
    }

    /// Makes room for one more connection: evicts one of the same family, or else of the other.
    fn make_room(&mut self, is_ip6: bool) -> bool {
        if self.len() < self.limit {
            return true;
        }
        let Connections { ip4, ip6, seq_offsets, .. } = self;
        match is_ip6 {
            false => ip4.evict(seq_offsets) || ip6.evict(seq_offsets),
            true => ip6.evict(seq_offsets) || ip4.evict(seq_offsets),
        }
    }
}

/// A planned connection: its original and its translated tuple.
pub(crate) struct Proposal {
    from: Tuple,
    to: Tuple,
    offsets: Offsets,
    flags: u8,
}

/// A connection to be inserted.
struct NewEntry {
    from: Tuple,
    to: Tuple,
    rule_refs: RuleRefs,
    offsets: Option<NonZeroU32>,
    flags: u8,
}

impl NewEntry {
    fn insert<K: Family>(
        &self,
        table: &mut FamilyTable<K>,
        timeouts: &Timeouts,
        limit: usize,
        now: u64,
    ) -> Option<PacketConnection> {
        let (key, mut entry) = ConntrackEntry::<K>::new(&self.from, &self.to);
        (entry.rule_refs, entry.offsets) = (self.rule_refs, self.offsets);
        entry.record(Direction::Original, self.flags);
        let until = now + entry.timeout(self.from.proto, timeouts);
        let id: Id = table.insert((key, entry), until, limit, now)?;
        let swapped = K::from_tuple(&self.from).ordered().1;
        let hit = Hit { id, is_second: false, swapped };
        table.entry(id).map(|entry| PacketConnection::new(entry, hit, (None, false)))
    }
}

/// Rewrite of the tuple of a packet.
pub(crate) enum TupleRewrite {
    /// The packet stays as it is.
    None,
    /// The packet gets this tuple, and nothing else changes.
    Tuple4(Tuple4),
    /// The rewrite is not a plain exchange of the tuple.
    Full,
}

impl PacketConnection {
    #[inline]
    fn new<K: Family>(
        entry: &ConntrackEntry<K>,
        hit: Hit,
        (quoted, has_ports): (QuotedOffset, bool),
    ) -> PacketConnection {
        let direction = entry.direction(hit.is_second, hit.swapped);
        // The quoted packet travelled in the opposite direction of the error.
        let direction = if quoted.is_some() { direction.opposite() } else { direction };
        PacketConnection { hit, quoted, is_ip6: K::IS_IP6, direction, has_ports }
    }

    /// Whether the connection is IPv6.
    pub(super) fn is_ip6(&self) -> bool {
        self.is_ip6
    }

    /// Identifier in the table of its family.
    pub(super) fn id(&self) -> Id {
        self.hit.id
    }

    fn quoted(&self) -> Option<usize> {
        self.quoted.map(|at| at.get() as usize)
    }

    #[inline]
    fn summary(&self, bytes: &[u8], headers: &Headers) -> PacketSummary {
        let (proto, tcp_flags) = (headers.protocol, headers.tcp_flags(bytes));
        PacketSummary { direction: self.direction, proto, tcp_flags }
    }
}

/// Returns the tuple of a packet; for an ICMP error that of the quoted packet, and its offset.
fn packet_tuple(bytes: &[u8], headers: &Headers) -> Option<(Tuple, QuotedOffset)> {
    let Some(at) = quoted(bytes, headers) else {
        return Some((Tuple::of_packet(bytes, headers)?, None));
    };
    let bytes = bytes.get(..headers.end)?;
    let inner = Headers::quoted(bytes, at)?;
    Some((Tuple::of_packet(bytes, &inner)?, NonZeroU32::new(at as u32)))
}

/// Whether the packet is an ICMP error, which quotes another packet.
pub(crate) fn quotes(bytes: &[u8], headers: &Headers) -> bool {
    quoted(bytes, headers).is_some()
}

/// Returns the offset of the packet that an ICMP error quotes.
fn quoted(bytes: &[u8], headers: &Headers) -> Option<usize> {
    if headers.is_later_fragment || !matches!(headers.upper, Layer::Icmp | Layer::Icmp6) {
        return None;
    }
    let (message, _) = Icmp::from_prefix(bytes.get(headers.transport..)?)?;
    let is_error = match headers.is_ip6 {
        false => icmp::is_error(message.kind()),
        true => icmp6::is_error(message.kind()),
    };
    is_error.then_some(headers.transport + Icmp::LEN)
}
