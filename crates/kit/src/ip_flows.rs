//! Numbering of flows between hosts in the order of their appearance, with idle timeouts.

use crate::lru::Lru;
use std::net::Ipv4Addr;

/// An endpoint of a flow: address and port.
pub type Endpoint = (Ipv4Addr, u16);

/// Idle timeouts of flows, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// TCP connections that are open.
    pub tcp: u64,
    /// TCP connections that both sides have closed.
    pub tcp_done: u64,
    /// UDP.
    pub udp: u64,
}

/// A flow's key: the lesser endpoint with the protocol above it, and the greater endpoint, as words
/// that are compared and hashed at once.
type Key = (u64, u64);

/// Bits of an endpoint in a word of a key.
const ENDPOINT_BITS: u32 = 48;

/// An endpoint as a number, in the order of endpoints.
#[inline]
fn packed((address, port): Endpoint) -> u64 {
    u64::from(address.to_bits()) << 16 | u64::from(port)
}

/// The endpoint in a word of a key.
fn unpacked(word: u64) -> Endpoint {
    (Ipv4Addr::from_bits((word >> 16) as u32), word as u16)
}

/// The key of a flow, and whether the source is the greater endpoint. Without `symmetric` the source
/// stands for the lesser one.
#[inline]
fn key_of(protocol: u8, (src, dst): (Endpoint, Endpoint), symmetric: bool) -> (Key, bool) {
    let (src, dst, protocol) = (packed(src), packed(dst), u64::from(protocol) << ENDPOINT_BITS);
    let swapped = symmetric && src > dst;
    (if swapped { (protocol | dst, src) } else { (protocol | src, dst) }, swapped)
}

/// The protocol of a key.
fn protocol_of(key: &Key) -> u8 {
    (key.0 >> ENDPOINT_BITS) as u8
}

/// The state of a flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    number: u32,
    /// Whether its first packet came from the greater endpoint.
    reverse: bool,
    first: u64,
    last: u64,
    /// Packets in the direction of the first packet, and in the opposite one.
    packets: [u32; 2],
    /// The sides that have closed the connection: a bit each.
    done: u8,
}

/// A flow that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedFlow {
    /// Its number.
    pub number: u32,
    /// The source of its first packet.
    pub src: Endpoint,
    /// The destination of its first packet.
    pub dst: Endpoint,
    /// The time of its first packet.
    pub first: u64,
    /// The time of its last packet.
    pub last: u64,
    /// Packets in the direction of the first packet, and in the opposite one.
    pub packets: [u32; 2],
}

impl Flow {
    /// Counts a packet, which came from the greater endpoint if `swapped`.
    fn count_packet(&mut self, flags: TcpFlags, swapped: bool) {
        if flags.rst {
            self.done = BOTH_SIDES;
        } else if flags.fin {
            self.done |= 1 << u8::from(swapped);
        }
        let packets = &mut self.packets[usize::from(self.reverse != swapped)];
        *packets = packets.saturating_add(1);
    }

    fn ended(&self, &(lesser, greater): &Key) -> EndedFlow {
        let (lesser, greater) = (unpacked(lesser), unpacked(greater));
        let &Flow { number, reverse, first, last, packets, .. } = self;
        let (src, dst) = if reverse { (greater, lesser) } else { (lesser, greater) };
        EndedFlow { number, src, dst, first, last, packets }
    }
}

/// The TCP flags of a segment that affect its flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpFlags {
    /// The segment opens a connection.
    pub syn: bool,
    /// The segment closes its side.
    pub fin: bool,
    /// The segment closes both sides.
    pub rst: bool,
}

/// The flows that are alive, up to a capacity. Beyond it, the flow that has been idle longest ends.
#[derive(Clone, Debug)]
pub struct Flows {
    flows: Lru<Key, Flow>,
    capacity: usize,
    evicted: u64,
    /// The number of the next flow, never 0.
    next: u32,
    /// The flows that have ended and were not taken yet.
    ended: Vec<EndedFlow>,
}

impl Default for Flows {
    fn default() -> Self {
        let (flows, ended) = Default::default();
        Flows { flows, capacity: CAPACITY as usize, evicted: 0, next: 1, ended }
    }
}

const BOTH_SIDES: u8 = 3;

/// The default number of flows: about 120 MB.
pub const CAPACITY: u32 = 1 << 20;

/// How many ended flows may accumulate before the caller should take them.
const MANY_ENDED: usize = 1024;

impl Flows {
    /// Sets the largest number of flows. Surplus flows end, those that have been idle longest
    /// first.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity.max(1);
        while self.flows.len() > self.capacity {
            self.evict();
        }
    }

    fn evict(&mut self) {
        if let Some((key, flow)) = self.flows.pop_oldest() {
            self.ended.push(flow.ended(&key));
            self.evicted += 1;
        }
    }

    /// How many flows ended for lack of room.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Whether so many flows have ended that the caller should take them.
    pub fn has_many_ended(&self) -> bool {
        self.ended.len() >= MANY_ENDED
    }

    /// Returns the number of a packet's flow and whether the packet goes in the opposite direction.
    /// If `symmetric`, both directions are one flow.
    #[inline]
    pub fn number(
        &mut self,
        protocol: u8,
        ends: (Endpoint, Endpoint),
        symmetric: bool,
        flags: TcpFlags,
        now: u64,
        timeouts: &Timeouts,
    ) -> (u32, bool) {
        let (key, swapped) = key_of(protocol, ends, symmetric);
        let Some(flow) = self.flows.get_mut(&key) else {
            if self.flows.len() >= self.capacity {
                self.evict();
            }
            return (self.add_flow(key, now, flags, swapped), false);
        };
        let is_expired = now.saturating_sub(flow.last) > timeouts.idle_timeout(protocol, flow.done);
        // A closed connection may be opened again with the same endpoints.
        let is_reopened = flags.syn && flow.done == BOTH_SIDES;
        if is_expired || is_reopened {
            self.ended.push(flow.ended(&key));
            return (self.add_flow(key, now, flags, swapped), false);
        }
        flow.last = flow.last.max(now);
        flow.count_packet(flags, swapped);
        (flow.number, flow.reverse != swapped)
    }

    /// Adds a flow with its first packet, and returns its number.
    #[cold]
    #[inline(never)]
    fn add_flow(&mut self, key: Key, now: u64, flags: TcpFlags, swapped: bool) -> u32 {
        let (number, reverse, packets) = (self.next, swapped, [0; 2]);
        let mut flow = Flow { number, reverse, first: now, last: now, packets, done: 0 };
        flow.count_packet(flags, swapped);
        self.flows.insert(key, flow, self.capacity);
        self.next = self.next.wrapping_add(1).max(1);
        flow.number
    }

    /// The number of an existing flow, and whether `src` to `dst` is its opposite direction.
    pub fn find(
        &self,
        protocol: u8,
        ends: (Endpoint, Endpoint),
        symmetric: bool,
    ) -> Option<(u32, bool)> {
        let (key, swapped) = key_of(protocol, ends, symmetric);
        let flow = self.flows.peek(&key)?;
        Some((flow.number, flow.reverse != swapped))
    }

    /// Ends flows that have been idle for their timeout.
    pub fn expire(&mut self, now: u64, timeouts: &Timeouts) {
        let ended = &mut self.ended;
        self.flows.retain(|key, flow| {
            let alive =
                now.saturating_sub(flow.last) <= timeouts.idle_timeout(protocol_of(key), flow.done);
            if !alive {
                ended.push(flow.ended(key));
            }
            alive
        });
    }

    /// Ends all flows.
    pub fn clear(&mut self) {
        self.ended.extend(self.flows.iter().map(|(key, flow)| flow.ended(key)));
        self.flows.clear();
    }

    /// How many flows are alive.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether no flow is alive.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Takes the flows that have ended since the last call, in the order of their numbers.
    pub fn take_ended(&mut self) -> Vec<EndedFlow> {
        let mut ended = std::mem::take(&mut self.ended);
        ended.sort_unstable_by_key(|it| it.number);
        ended
    }
}

impl Timeouts {
    fn idle_timeout(&self, protocol: u8, done: u8) -> u64 {
        match (protocol == castanet_wire::ip_proto::TCP, done == BOTH_SIDES) {
            (true, false) => self.tcp,
            (true, true) => self.tcp_done,
            (false, _) => self.udp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts = Timeouts { tcp: 1000, tcp_done: 10, udp: 100 };
    const TCP: u8 = 6;
    const UDP: u8 = 17;

    fn end(host: u8, port: u16) -> Endpoint {
        (Ipv4Addr::new(10, 0, 0, host), port)
    }

    fn numbers(flows: &mut Flows) -> Vec<u32> {
        flows.take_ended().iter().map(|it| it.number).collect()
    }

    fn number(
        flows: &mut Flows,
        protocol: u8,
        ends: (Endpoint, Endpoint),
        flags: TcpFlags,
        now: u64,
    ) -> (u32, bool) {
        flows.number(protocol, ends, true, flags, now, &TIMEOUTS)
    }

    #[test]
    fn flows_are_numbered_and_have_a_direction() {
        let (mut flows, none) = (Flows::default(), TcpFlags::default());
        let (forward, back) = ((end(9, 1), end(1, 2)), (end(1, 2), end(9, 1)));
        assert_eq!(number(&mut flows, TCP, forward, none, 0), (1, false));
        assert_eq!(number(&mut flows, TCP, back, none, 0), (1, true));
        assert_eq!(number(&mut flows, UDP, back, none, 0), (2, false));
        assert_eq!(number(&mut flows, UDP, forward, none, 0), (2, true));
        assert_eq!(flows.find(UDP, forward, true), Some((2, true)));
        assert_eq!(flows.find(UDP, (end(3, 3), end(1, 1)), true), None);
        let one_way = flows.number(UDP, forward, false, none, 0, &TIMEOUTS);
        assert_eq!(one_way, (3, false));
    }

    #[test]
    fn the_longest_idle_flow_is_evicted() {
        let (mut flows, none) = (Flows::default(), TcpFlags::default());
        flows.set_capacity(3);
        let ends = |n: u32| ((Ipv4Addr::from_bits(n), 1), end(1, 2));
        for n in 0..3 {
            number(&mut flows, UDP, ends(n), none, 0);
        }
        number(&mut flows, UDP, ends(0), none, 1);
        for n in 3..100_000 {
            assert_eq!(number(&mut flows, TCP, ends(n), none, 1), (n + 1, false));
            // An active flow stays.
            assert_eq!(number(&mut flows, UDP, ends(0), none, 1).0, 1);
            assert_eq!(flows.len(), 3);
            if flows.has_many_ended() {
                assert_eq!(flows.take_ended().len(), MANY_ENDED);
            }
        }
        assert_eq!(flows.evicted(), 100_000 - 3);
        flows.set_capacity(1);
        assert_eq!((flows.len(), flows.find(UDP, ends(0), true)), (1, Some((1, false))));
    }

    #[test]
    fn flows_end_by_timeout_and_by_flags() {
        let (mut flows, none) = (Flows::default(), TcpFlags::default());
        let (forward, back) = ((end(1, 1), end(2, 2)), (end(2, 2), end(1, 1)));
        let fin = TcpFlags { fin: true, ..none };
        let syn = TcpFlags { syn: true, ..none };
        assert_eq!(number(&mut flows, UDP, forward, none, 0).0, 1);
        assert_eq!(number(&mut flows, UDP, forward, none, 100).0, 1);
        assert_eq!(number(&mut flows, UDP, forward, none, 201).0, 2);
        assert_eq!(number(&mut flows, TCP, forward, syn, 300).0, 3);
        number(&mut flows, TCP, forward, fin, 301);
        assert_eq!(number(&mut flows, TCP, back, fin, 302).0, 3);
        assert_eq!(number(&mut flows, TCP, forward, none, 303).0, 3);
        assert_eq!(number(&mut flows, TCP, forward, syn, 304).0, 4);
        assert_eq!(number(&mut flows, TCP, forward, TcpFlags { rst: true, ..none }, 305).0, 4);
        assert_eq!(number(&mut flows, TCP, forward, none, 316).0, 5);
        assert_eq!(numbers(&mut flows), [1, 3, 4]);
        flows.expire(2000, &TIMEOUTS);
        assert!(flows.is_empty());
        assert_eq!(numbers(&mut flows), [2, 5]);
        number(&mut flows, TCP, back, syn, 2000);
        number(&mut flows, TCP, back, none, 2100);
        number(&mut flows, TCP, forward, none, 2200);
        flows.clear();
        let (src, dst) = back;
        let ended = EndedFlow { number: 6, src, dst, first: 2000, last: 2200, packets: [2, 1] };
        assert_eq!((flows.take_ended(), flows.len()), (vec![ended], 0));
    }
}
