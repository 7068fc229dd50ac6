//! Mappings as another table of the same rewriter takes them over.

use super::eviction::EvictionEntry;
use super::mapping::Mapping;
use super::seq_shifts::SeqShifts;
use super::{Outputs, Table};
use crate::conntrack::{TABLE_PART, Tuple4};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// Slots of other members and free ones that one part of an export passes over.
const SCAN: usize = 16 * TABLE_PART;

/// The addresses, ports and protocol of a flow, which are the key of its mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowKey {
    src: ([u8; 4], u16),
    dst: ([u8; 4], u16),
    proto: u8,
}

/// A mapping without its key and its expiry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MappingRecord {
    /// The key of replies; `None` if they have that of the flow itself.
    reply: Option<FlowKey>,
    outputs: Outputs,
    input: u16,
    best_effort_ms: u32,
    anno: u8,
    state: u8,
    shifts: Option<SeqShifts>,
}

impl From<Tuple4> for FlowKey {
    fn from(tuple: Tuple4) -> FlowKey {
        let [src, dst] = [tuple.src(), tuple.dst()].map(|(ip, port)| (ip.octets(), port));
        FlowKey { src, dst, proto: tuple.proto() }
    }
}

impl FlowKey {
    fn in_zone(self, zone: u16) -> Tuple4 {
        let [src, dst] = [self.src, self.dst].map(|(ip, port)| (ip.into(), port));
        Tuple4::new(src, dst, self.proto).in_zone(zone)
    }
}

impl Mapping {
    fn record(&self) -> MappingRecord {
        MappingRecord {
            reply: self.reply_key.map(FlowKey::from),
            outputs: self.outputs,
            input: self.input,
            best_effort_ms: self.best_effort_ms.load(Relaxed),
            anno: self.anno,
            state: self.state.load(Relaxed),
            shifts: self.shifts.as_deref().cloned(),
        }
    }

    fn of_record(record: MappingRecord, zone: u16, number: u32) -> Mapping {
        Mapping {
            reply_key: record.reply.map(|key| key.in_zone(zone)),
            shifts: record.shifts.map(Box::new),
            outputs: record.outputs,
            input: record.input,
            best_effort_ms: AtomicU32::new(record.best_effort_ms),
            eviction_entry: EvictionEntry::None,
            number,
            anno: record.anno,
            state: AtomicU8::new(record.state),
        }
    }
}

impl Table {
    /// Calls `each` with the mappings of a member, and the time at which each expires, in some slots of the
    /// table from number `from` on; returns the number of the slot behind them, if there are more.
    pub fn export(
        &self,
        zone: u16,
        from: u64,
        mut each: impl FnMut(FlowKey, u64, MappingRecord),
    ) -> Option<u64> {
        let first = usize::try_from(from).unwrap_or(usize::MAX);
        let end = first.saturating_add(SCAN).min(self.flows.extent());
        let mut left = TABLE_PART;
        for slot in first..end {
            let Some(id) = self.flows.id_at(slot) else { continue };
            let key = *self.flows.key(id);
            if key.zone() == zone {
                each(key.into(), self.flows.deadline(id), self.flows.get(id).record());
                left -= 1;
                if left == 0 {
                    return Some(slot as u64 + 1);
                }
            }
        }
        (end < self.flows.extent()).then_some(end as u64)
    }

    /// Takes over a mapping of a member with so many outputs, which expires at time `until`, in place of one
    /// with the same key; returns whether it fits and there was room.
    pub fn import(
        &mut self,
        (zone, outputs): (u16, usize),
        key: FlowKey,
        record: MappingRecord,
        (until, now): (u64, u64),
    ) -> bool {
        let Some(member) = self.members.get_mut(usize::from(zone)) else { return false };
        let has_outputs = record.outputs.iter().all(|&output| usize::from(output) < outputs);
        let input = usize::from(record.input);
        if !has_outputs || input >= member.counters.len() {
            return false;
        }
        let mapping = Mapping::of_record(record, zone, self.numbers.next());
        let key = key.in_zone(zone);
        for key in [Some(key), mapping.reply_key].into_iter().flatten() {
            if let Some((old, _)) = self.flows.find(&key) {
                self.remove(old);
            }
        }
        let Ok(id) = self.flows.insert(key, mapping, until, now) else { return false };
        self.eviction.add(&mut self.flows, id, now);
        self.members[usize::from(zone)].counters[input].count += 1;
        true
    }

    /// Removes the mapping of a member's flow.
    pub fn remove_flow(&mut self, zone: u16, key: FlowKey) {
        if let Some((id, _)) = self.flows.find(&key.in_zone(zone)) {
            self.remove(id);
        }
    }
}
