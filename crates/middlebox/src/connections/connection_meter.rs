//! The meter of connections: their counts, and the records of those that have ended.

use super::entry::{ConnectionState, ConntrackEntry};
use super::mapping::Direction;
use super::table::{Connections, FamilyTable};
use crate::headers::Headers;
use castanet_kit::conntrack::{Address, Id, Tuple, TupleKey};
use castanet_kit::ipfix::{ConnectionCounters, ConnectionCounts};
use castanet_wire::ipfix::{EndReason, FlowRecord, Translation};
use castanet_wire::{Ipv4Header, Ipv6Header};
use std::net::IpAddr;

/// Records of ended connections that wait for the exporter, which looks ten times a second.
const MOST_WAITING: usize = 65_536;
const MILLISECOND: u64 = 1_000_000;

/// The counts of all connections, and the records of those that have ended.
#[derive(Default)]
pub(super) struct ConnectionMeter {
    /// Of IPv4 and of IPv6.
    counters: [ConnectionCounters; 2],
    waiting: Vec<FlowRecord>,
    /// Records for which there was no room.
    lost: u64,
}

impl ConnectionMeter {
    /// The counts of the family of `A`.
    fn counters<A: Address>(&self) -> &ConnectionCounters {
        let address: IpAddr = A::NONE.into();
        &self.counters[usize::from(address.is_ipv6())]
    }

    /// Counts a packet of a connection.
    #[inline]
    pub(super) fn count(
        &self,
        (id, is_ip6): (Id, bool),
        direction: Direction,
        octets: usize,
        now: u64,
    ) {
        let counters = &self.counters[usize::from(is_ip6)];
        counters.count(id.number(), direction as usize, octets as u64, now);
    }

    /// Takes the counts of a connection that has ended, and keeps its record for the exporter.
    pub(super) fn end<A: Address>(
        &mut self,
        id: Id,
        key: &TupleKey<A>,
        entry: &ConntrackEntry<TupleKey<A>>,
        reason: EndReason,
    ) {
        let Some(record) = self.take(id, key, entry, reason) else { return };
        match self.waiting.len() < MOST_WAITING {
            true => self.waiting.push(record),
            false => self.lost += 1,
        }
    }

    /// Takes the counts of a connection as a record; `None` if there are no packets since the last
    /// one.
    fn take<A: Address>(
        &self,
        id: Id,
        key: &TupleKey<A>,
        entry: &ConntrackEntry<TupleKey<A>>,
        reason: EndReason,
    ) -> Option<FlowRecord> {
        let (from, to) = entry.tuples(key);
        let (from, to) = (from.tuple(), to.tuple());
        let counts = self.counters::<A>().take(id.number())?;
        Some(record(&from, &to, entry.state(), counts, reason))
    }

    /// As [`Connections::export_due`], of one family.
    fn export_due<A: Address>(
        &self,
        table: &FamilyTable<A>,
        (from, until): (usize, usize),
        (before, reason): (u64, EndReason),
        export: &mut dyn FnMut(&FlowRecord),
    ) {
        for id in (from..until).filter_map(|number| table.id_at(number)) {
            let (key, entry) = (table.key(id), table.get(id));
            let is_over = entry.state().is_over();
            let first = self.counters::<A>().first(id.number());
            let is_due = reason != EndReason::ActiveTimeout
                || is_over
                || first.is_some_and(|first| first <= before);
            let reason = if is_over { EndReason::EndOfFlow } else { reason };
            if is_due && let Some(record) = self.take(id, key, entry, reason) {
                export(&record);
            }
        }
    }
}

impl Connections {
    /// Begins or ends to meter connections. Every worker calls this; the first call has the
    /// effect.
    pub(crate) fn set_metered(&mut self, is_metered: bool) {
        if is_metered != self.meter.is_some() {
            self.meter = is_metered.then(Box::default);
            self.reserve_counters();
        }
    }

    /// Whether connections are metered.
    pub(crate) fn is_metered(&self) -> bool {
        self.meter.is_some()
    }

    /// Makes room for the counters of all connections.
    pub(super) fn reserve_counters(&mut self) {
        if let Some(meter) = &mut self.meter {
            meter.counters[0].reserve(self.ip4.extent());
            meter.counters[1].reserve(self.ip6.extent());
        }
    }

    /// One more than the largest number of a connection of either family.
    pub(crate) fn extent(&self) -> usize {
        self.ip4.extent().max(self.ip6.extent())
    }

    /// Whether records of ended connections wait, or were lost.
    pub(crate) fn has_records(&self) -> bool {
        self.meter.as_ref().is_some_and(|it| !it.waiting.is_empty() || it.lost > 0)
    }

    /// Takes the records of ended connections, and the number of those that were lost.
    pub(crate) fn take_records(&mut self) -> (Vec<FlowRecord>, u64) {
        let take = |it: &mut Box<ConnectionMeter>| {
            (std::mem::take(&mut it.waiting), std::mem::take(&mut it.lost))
        };
        self.meter.as_mut().map(take).unwrap_or_default()
    }

    /// Passes the records that are due of the connections in slots `from` to `until` to `export`:
    /// of TCP connections that are over, of those with packets at or before the time `before`, and
    /// of all if `reason` is another than the active timeout.
    pub(crate) fn export_due(
        &self,
        slots: (usize, usize),
        due: (u64, EndReason),
        export: &mut dyn FnMut(&FlowRecord),
    ) {
        if let Some(meter) = &self.meter {
            meter.export_due(&self.ip4, slots, due, export);
            meter.export_due(&self.ip6, slots, due, export);
        }
    }
}

/// Bytes of an IP packet with its header. Those of a later fragment, which is seen with the headers
/// of the first one, are in its length field.
#[inline]
pub(crate) fn octets(bytes: &[u8], headers: &Headers) -> usize {
    if !headers.is_fragment {
        return headers.end - headers.network;
    }
    let header = bytes.get(headers.network..).unwrap_or_default();
    match headers.is_ip6 {
        false => Ipv4Header::from_prefix(header).map_or(0, |(ip, _)| ip.total_len().into()),
        true => Ipv6Header::from_prefix(header)
            .map_or(0, |(ip, _)| Ipv6Header::LEN + usize::from(ip.payload_len())),
    }
}

fn record(
    from: &Tuple,
    to: &Tuple,
    state: &ConnectionState,
    counts: ConnectionCounts,
    reason: EndReason,
) -> FlowRecord {
    let ConnectionCounts { first, last, counts: [mut forward, mut reverse] } = counts;
    [forward.tcp_flags, reverse.tcp_flags] = state.flags();
    FlowRecord {
        src: from.src,
        dst: from.dst,
        protocol: from.proto,
        class: 0,
        vlan: 0,
        ingress: 0,
        start: first / MILLISECOND,
        end: last / MILLISECOND,
        reason,
        counts: forward,
        reverse: Some(reverse),
        translation: (from != to).then_some(Translation { src: to.src, dst: to.dst }),
    }
}
