//! The table of flows in one direction, which ends them by timeouts, by TCP, or for others.

use super::MILLISECOND;
use super::observed_packet::{FlowKey, ObservedPacket};
use crate::conntrack::{Address, Entry, Key, Table, TupleKey};
use castanet_wire::ipfix::{Counts, EndReason, FlowRecord};
use castanet_wire::tcp::flag;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Limits of the flows of a cache; times are in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowLimits {
    /// The time without packets after which a flow ends.
    pub inactive: u64,
    /// The time after which a flow with packets has a record, and begins anew.
    pub active: u64,
    /// The largest number of flows, at least 1.
    pub flows: usize,
}

/// How long a flow stays whose TCP has closed or reset the connection, for the segments that
/// follow.
const CLOSE_DELAY: u64 = 1000 * MILLISECOND;

/// A flow of one direction.
#[derive(Default)]
struct Flow<K> {
    start: u64,
    last: u64,
    counts: Counts,
    class: u8,
    /// Whether TCP has closed or reset the connection.
    is_closed: bool,
    key: PhantomData<K>,
}

impl<K: Key> Entry for Flow<K> {
    type Key = K;
}

type FamilyTable<A> = Table<Flow<TupleKey<A>>>;

/// The flows of both families. A flow has addresses, ports or the type and code of ICMP, protocol
/// and VLAN in common. Times are nanoseconds since 1970 and never decrease.
#[derive(Default)]
pub struct FlowCache {
    ip4: FamilyTable<Ipv4Addr>,
    ip6: FamilyTable<Ipv6Addr>,
    limits: FlowLimits,
    /// Index of the interface in records.
    ingress: u32,
    evicted: u64,
}

/// Takes the records of flows that have ended.
type RecordSink<'e> = &'e mut dyn FnMut(&FlowRecord);

impl FlowCache {
    /// Sets the limits, and the index of the interface by which all packets come in. Deadlines of
    /// present flows stay until their next packets.
    pub fn configure(&mut self, limits: FlowLimits, ingress: u32) {
        let flows = limits.flows.max(1);
        (self.limits, self.ingress) = (FlowLimits { flows, ..limits }, ingress);
        self.ip4.set_limit(flows);
        self.ip6.set_limit(flows);
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.ip4.len() + self.ip6.len()
    }

    /// Whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of flows that have ended for lack of room.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Counts a packet in its flow. The flow may have ended before it, or another may end to make
    /// room for its flow.
    #[inline]
    pub fn count(&mut self, packet: &ObservedPacket, now: u64, ended: RecordSink) {
        match packet.key {
            FlowKey::Ip4(key) => {
                if !count(&mut self.ip4, (key, packet), now, &self.limits) {
                    self.begin(key, packet, now, ended);
                }
            }
            FlowKey::Ip6(key) => {
                if !count(&mut self.ip6, (key, packet), now, &self.limits) {
                    self.begin(key, packet, now, ended);
                }
            }
        }
    }

    /// Begins a flow with its first packet, in place of one with the same key that is over.
    #[cold]
    fn begin<A: Family>(
        &mut self,
        key: TupleKey<A>,
        packet: &ObservedPacket,
        now: u64,
        ended: RecordSink,
    ) {
        let (ingress, limits) = (self.ingress, self.limits);
        if let Some((id, _)) = A::table(self).find(&key) {
            let (key, flow) = A::table(self).remove(id);
            ended(&record(&key, &flow, flow.end_reason(&limits), ingress));
        }
        while self.len() >= limits.flows && self.evict(ended) {}
        let mut flow = Flow { start: now, class: packet.class, ..Flow::default() };
        flow.add(packet, now);
        let until = flow.deadline(&limits);
        // Refused only where the index has no room for the key; the packet is not counted then.
        _ = A::table(self).insert(key, flow, until, now);
    }

    /// Ends one flow for lack of room; returns whether there was one.
    fn evict(&mut self, ended: RecordSink) -> bool {
        let ingress = self.ingress;
        let reason = EndReason::LackOfResources;
        let is_done = if self.ip4.len() >= self.ip6.len() {
            self.ip4.evict(|_| true).map(|(key, flow)| ended(&record(&key, &flow, reason, ingress)))
        } else {
            self.ip6.evict(|_| true).map(|(key, flow)| ended(&record(&key, &flow, reason, ingress)))
        };
        self.evicted += u64::from(is_done.is_some());
        is_done.is_some()
    }

    /// Whether [`FlowCache::expire`] may find flows that are over.
    #[inline]
    pub fn is_due(&self, now: u64) -> bool {
        self.ip4.is_due(now) || self.ip6.is_due(now)
    }

    /// Ends flows whose time is over, of which it checks `limit` of each family at most. Returns
    /// whether none is left to check.
    pub fn expire(&mut self, now: u64, limit: usize, ended: RecordSink) -> bool {
        let (limits, ingress) = (self.limits, self.ingress);
        self.ip4.expire(now, limit, |_, key, flow| {
            ended(&record(&key, &flow, flow.end_reason(&limits), ingress));
        }) & self.ip6.expire(now, limit, |_, key, flow| {
            ended(&record(&key, &flow, flow.end_reason(&limits), ingress));
        })
    }

    /// Ends all flows, by force.
    pub fn clear(&mut self, ended: RecordSink) {
        let (ingress, reason) = (self.ingress, EndReason::ForcedEnd);
        for (_, key, flow) in self.ip4.iter() {
            ended(&record(key, flow, reason, ingress));
        }
        for (_, key, flow) in self.ip6.iter() {
            ended(&record(key, flow, reason, ingress));
        }
        (self.ip4, self.ip6) = <_>::default();
        self.configure(self.limits, ingress);
    }
}

/// An address family, which has a table.
trait Family: Address {
    fn table(cache: &mut FlowCache) -> &mut FamilyTable<Self>;
}

impl Family for Ipv4Addr {
    fn table(cache: &mut FlowCache) -> &mut FamilyTable<Self> {
        &mut cache.ip4
    }
}

impl Family for Ipv6Addr {
    fn table(cache: &mut FlowCache) -> &mut FamilyTable<Self> {
        &mut cache.ip6
    }
}

/// Counts a packet of an existing flow; false if it begins a flow.
#[inline]
fn count<A: Address>(
    table: &mut FamilyTable<A>,
    (key, packet): (TupleKey<A>, &ObservedPacket),
    now: u64,
    limits: &FlowLimits,
) -> bool {
    let Some((id, _)) = table.find(&key) else { return false };
    let is_over = table.deadline(id) <= now;
    let flow = table.get_mut(id);
    let is_reopened = flow.is_closed && packet.tcp_flags & flag::SYN != 0;
    if is_over || is_reopened {
        return false;
    }
    let was_closed = flow.is_closed;
    flow.add(packet, now);
    if !was_closed {
        let until = flow.deadline(limits);
        table.set_deadline(id, until);
    }
    true
}

impl<K> Flow<K> {
    #[inline]
    fn add(&mut self, packet: &ObservedPacket, now: u64) {
        self.last = now;
        self.counts.octets += packet.octets;
        self.counts.packets += 1;
        self.counts.tcp_flags |= packet.tcp_flags;
        self.is_closed |= packet.tcp_flags & (flag::FIN | flag::RST) != 0;
    }

    /// The time at which the flow ends unless packets come.
    #[inline]
    fn deadline(&self, limits: &FlowLimits) -> u64 {
        let inactive = if self.is_closed { CLOSE_DELAY } else { limits.inactive };
        let (idle, active) =
            (self.last.saturating_add(inactive), self.start.saturating_add(limits.active));
        idle.min(active)
    }

    /// The reason why the flow ends at its deadline.
    fn end_reason(&self, limits: &FlowLimits) -> EndReason {
        let idle = self.last.saturating_add(limits.inactive);
        match (self.is_closed, self.start.saturating_add(limits.active) < idle) {
            (true, _) => EndReason::EndOfFlow,
            (false, true) => EndReason::ActiveTimeout,
            (false, false) => EndReason::IdleTimeout,
        }
    }
}

fn record<A: Address>(
    key: &TupleKey<A>,
    flow: &Flow<TupleKey<A>>,
    reason: EndReason,
    ingress: u32,
) -> FlowRecord {
    let (src, dst) = (key.src(), key.dst());
    FlowRecord {
        src: (src.0.into(), src.1),
        dst: (dst.0.into(), dst.1),
        protocol: key.proto(),
        class: flow.class,
        vlan: key.zone(),
        ingress,
        start: flow.start / MILLISECOND,
        end: flow.last / MILLISECOND,
        reason,
        counts: flow.counts,
        reverse: None,
        translation: None,
    }
}
