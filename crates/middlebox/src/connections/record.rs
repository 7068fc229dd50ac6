//! Connections as another instance takes them over.

use super::entry::{ConnectionState, ConntrackEntry};
use super::mapping::Offsets;
use super::table::{Connections, FamilyTable};
use crate::matcher::{RuleKey, RuleRef, RuleSlots};
use crate::rule_set::Entry;
use castanet_kit::conntrack::{Address, Id, TABLE_PART, Tuple};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::Arc;

/// The addresses, ports and protocol of a connection, in the direction of its first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConnectionKey {
    src: (IpAddr, u16),
    dst: (IpAddr, u16),
    proto: u8,
}

/// A connection without its key and its expiry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ConnectionRecord {
    /// The translated tuple; `None` without translation.
    to: Option<ConnectionKey>,
    offsets: Offsets,
    /// TCP flags seen, in both directions.
    flags: [u8; 2],
    has_reply: bool,
    /// Its rules.
    pub(crate) rules: Vec<RuleKey>,
}

impl From<Tuple> for ConnectionKey {
    fn from(Tuple { src, dst, proto }: Tuple) -> ConnectionKey {
        ConnectionKey { src, dst, proto }
    }
}

impl ConnectionKey {
    /// The tuple; `None` if its ends are of two families.
    fn tuple(self) -> Option<Tuple> {
        let ConnectionKey { src, dst, proto } = self;
        (src.0.is_ipv6() == dst.0.is_ipv6()).then_some(Tuple { src, dst, proto })
    }
}

/// Set in the positions of connections of IPv6.
const IP6: u64 = 1 << 63;

impl Connections {
    /// Calls `each` with the connections, and the time at which each expires, in some slots of the tables from
    /// position `from` on; returns the position behind them, if there are more.
    pub(crate) fn export(
        &self,
        slots: &RuleSlots,
        from: u64,
        mut each: impl FnMut(ConnectionKey, u64, ConnectionRecord),
    ) -> Option<u64> {
        let first = usize::try_from(from & !IP6).unwrap_or(usize::MAX);
        let end = first.saturating_add(TABLE_PART);
        let (extent, family) = match from & IP6 {
            0 => {
                self.export_family(&self.ip4, slots, first..end, &mut each);
                (self.ip4.extent(), 0)
            }
            _ => {
                self.export_family(&self.ip6, slots, first..end, &mut each);
                (self.ip6.extent(), IP6)
            }
        };
        match end < extent {
            true => Some(end as u64 | family),
            false => (family == 0 && self.ip6.extent() > 0).then_some(IP6),
        }
    }

    fn export_family<A: Address>(
        &self,
        table: &FamilyTable<A>,
        slots: &RuleSlots,
        range: std::ops::Range<usize>,
        each: &mut impl FnMut(ConnectionKey, u64, ConnectionRecord),
    ) {
        let end = range.end.min(table.extent());
        for id in (range.start..end).filter_map(|number| table.id_at(number)) {
            let (key, record) = self.handover_record(table, slots, id);
            each(key, table.deadline(id), record);
        }
    }

    fn handover_record<A: Address>(
        &self,
        table: &FamilyTable<A>,
        slots: &RuleSlots,
        id: Id,
    ) -> (ConnectionKey, ConnectionRecord) {
        let (entry, key) = (table.get(id), table.key(id));
        let (from, to) = entry.tuples(key);
        let state = entry.state();
        let record = ConnectionRecord {
            to: (from != to).then(|| to.tuple().into()),
            offsets: self.seq_offsets.get(state.offsets),
            flags: state.flags(),
            has_reply: state.has_reply(),
            rules: slots.keys(self.rule_lists.rules(&state.rule_refs)),
        };
        (from.tuple().into(), record)
    }

    /// Takes over a connection with these rules, which expires at time `until`, in place of those with the same
    /// key; returns whether it fits and there was room.
    pub(crate) fn import(
        &mut self,
        key: ConnectionKey,
        record: &ConnectionRecord,
        rules: &[RuleRef],
        (until, now): (u64, u64),
    ) -> bool {
        let (Some(from), Some(to)) = (key.tuple(), record.to.unwrap_or(key).tuple()) else {
            return false;
        };
        if from.is_ip6() != to.is_ip6() || from.proto != to.proto {
            return false;
        }
        for tuple in [&from, &to] {
            if let Some(hit) = self.hit(tuple) {
                self.remove_hit(hit);
            }
        }
        if !self.make_room(from.is_ip6()) {
            return false;
        }
        let offsets = self.seq_offsets.insert(record.offsets);
        let state = ConnectionState::new(self.rule_lists.intern(rules), offsets);
        state.set_seen(record.flags, record.has_reply);
        let hit = match from.is_ip6() {
            false => ConntrackEntry::insert(&mut self.ip4, (&from, &to), state, until, now),
            true => ConntrackEntry::insert(&mut self.ip6, (&from, &to), state, until, now),
        };
        if hit.is_none() {
            self.seq_offsets.remove(offsets);
        }
        self.reserve_counters();
        hit.is_some()
    }

    /// Sets the rules of a connection that has come before its rules.
    pub(crate) fn set_rules_of(&mut self, key: ConnectionKey, rules: &[RuleRef]) {
        let refs = self.rule_lists.intern(rules);
        let Some((tuple, hit)) = key.tuple().and_then(|it| Some((it, self.hit(&it)?))) else {
            return;
        };
        let state = match hit.is_ip6 {
            false => self.ip4.get_mut(hit.id).state_mut(),
            true => self.ip6.get_mut(hit.id).state_mut(),
        };
        let before = std::mem::replace(&mut state.rule_refs, refs);
        let id = (hit.is_ip6, hit.id);
        self.limited.remove(self.rule_lists.rules(&before), &tuple, id);
    }

    /// Counts a connection from another instance for its rules.
    pub(crate) fn limit(&mut self, key: ConnectionKey, entries: &[Arc<Entry>], now: u64) {
        if let Some((tuple, hit)) = key.tuple().and_then(|it| Some((it, self.hit(&it)?))) {
            entries.iter().for_each(|entry| self.limit_by(entry, &tuple, hit, now));
        }
    }

    /// Removes the connection with this key.
    pub(crate) fn forget(&mut self, key: ConnectionKey) {
        let hit = key.tuple().and_then(|tuple| self.hit(&tuple));
        if let Some(hit) = hit.filter(|hit| !hit.is_second) {
            self.remove_hit(hit);
        }
    }
}
