//! Flows between hosts, numbered as they appear, until they have been silent for long enough.

use crate::lru::Lru;
use std::net::Ipv4Addr;

/// One end of a flow: address and port.
pub type End = (Ipv4Addr, u16);

/// How long flows live without packets, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// TCP that has not ended.
    pub tcp: u64,
    /// TCP whose both sides have ended.
    pub tcp_done: u64,
    /// UDP.
    pub udp: u64,
}

/// A flow's key: protocol, lesser end, greater end.
type Key = (u8, End, End);

/// What is known of a flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    number: u32,
    /// Whether its first packet came from the greater end.
    reverse: bool,
    first: u64,
    last: u64,
    /// Packets as the first went, and against it.
    packets: [u32; 2],
    /// Which sides have said that they are done: a bit each.
    done: u8,
}

/// A flow that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// Its number.
    pub number: u32,
    /// Where its first packet came from.
    pub src: End,
    /// Where its first packet went.
    pub dst: End,
    /// When its first packet came.
    pub first: u64,
    /// When its last packet came.
    pub last: u64,
    /// Packets as the first went, and against it.
    pub packets: [u32; 2],
}

impl Flow {
    /// Counts a packet, which came from the greater end or the lesser.
    fn note(&mut self, marks: Marks, swapped: bool) {
        if marks.rst {
            self.done = BOTH;
        } else if marks.fin {
            self.done |= 1 << u8::from(swapped);
        }
        let packets = &mut self.packets[usize::from(self.reverse != swapped)];
        *packets = packets.saturating_add(1);
    }

    fn over(&self, &(_, lesser, greater): &Key) -> Over {
        let &Flow { number, reverse, first, last, packets, .. } = self;
        let (src, dst) = if reverse { (greater, lesser) } else { (lesser, greater) };
        Over { number, src, dst, first, last, packets }
    }
}

/// What a segment of TCP says of its flow's life.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    /// It begins one.
    pub syn: bool,
    /// It ends its side.
    pub fin: bool,
    /// It ends both.
    pub rst: bool,
}

/// All flows that are alive, up to a limit: where there are more, the one that has been silent
/// for longest is over.
#[derive(Clone, Debug)]
pub struct Flows {
    flows: Lru<Key, Flow>,
    capacity: usize,
    displaced: u64,
    /// The number of the next flow; 0 is none.
    next: u32,
    /// The flows that have ended since somebody asked.
    over: Vec<Over>,
}

impl Default for Flows {
    fn default() -> Self {
        let (flows, over) = Default::default();
        Flows { flows, capacity: CAPACITY as usize, displaced: 0, next: 1, over }
    }
}

const BOTH: u8 = 3;

/// How many flows there may be unless said otherwise: some 120 MB.
pub const CAPACITY: u32 = 1 << 20;

/// How many flows that are over wait to be asked for before somebody should.
const MANY: usize = 1024;

impl Flows {
    /// Sets how many flows there may be; if there are more, those that have been silent for
    /// longest are over.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity.max(1);
        while self.flows.len() > self.capacity {
            self.displace();
        }
    }

    fn displace(&mut self) {
        if let Some((key, flow)) = self.flows.pop_oldest() {
            self.over.push(flow.over(&key));
            self.displaced += 1;
        }
    }

    /// How many flows were over because there was no room for them.
    pub fn displaced(&self) -> u64 {
        self.displaced
    }

    /// Whether so many flows are over that they should be asked for.
    pub fn are_many_over(&self) -> bool {
        self.over.len() >= MANY
    }

    /// The number of a packet's flow and whether the packet goes against it. If
    /// `symmetric` both directions are one flow.
    pub fn number(
        &mut self,
        protocol: u8,
        (src, dst): (End, End),
        symmetric: bool,
        marks: Marks,
        now: u64,
        timeouts: &Timeouts,
    ) -> (u32, bool) {
        let swapped = symmetric && src > dst;
        let key = if swapped { (protocol, dst, src) } else { (protocol, src, dst) };
        let fresh = Flow {
            number: self.next,
            reverse: swapped,
            first: now,
            last: now,
            packets: [0; 2],
            done: 0,
        };
        let Some(flow) = self.flows.get_mut(&key) else {
            if self.flows.len() >= self.capacity {
                self.displace();
            }
            return (self.begin(key, fresh, marks, swapped), false);
        };
        let silent = now.saturating_sub(flow.last) > timeouts.of(protocol, flow.done);
        // A connection that was over may begin again with the same ends.
        let anew = marks.syn && flow.done == BOTH;
        if silent || anew {
            self.over.push(flow.over(&key));
            return (self.begin(key, fresh, marks, swapped), false);
        }
        flow.last = flow.last.max(now);
        flow.note(marks, swapped);
        (flow.number, flow.reverse != swapped)
    }

    /// Enters a flow with its first packet; its number.
    fn begin(&mut self, key: Key, mut flow: Flow, marks: Marks, swapped: bool) -> u32 {
        flow.note(marks, swapped);
        self.flows.insert(key, flow, self.capacity);
        self.next = self.next.wrapping_add(1).max(1);
        flow.number
    }

    /// The number of a flow that is there already, and whether `src` to `dst` goes against it.
    pub fn find(
        &self,
        protocol: u8,
        (src, dst): (End, End),
        symmetric: bool,
    ) -> Option<(u32, bool)> {
        let swapped = symmetric && src > dst;
        let key = if swapped { (protocol, dst, src) } else { (protocol, src, dst) };
        let flow = self.flows.peek(&key)?;
        Some((flow.number, flow.reverse != swapped))
    }

    /// Forgets flows that have been silent for long enough.
    pub fn reap(&mut self, now: u64, timeouts: &Timeouts) {
        let over = &mut self.over;
        self.flows.retain(|key, flow| {
            let alive = now.saturating_sub(flow.last) <= timeouts.of(key.0, flow.done);
            if !alive {
                over.push(flow.over(key));
            }
            alive
        });
    }

    /// Forgets all flows.
    pub fn clear(&mut self) {
        self.over.extend(self.flows.iter().map(|(key, flow)| flow.over(key)));
        self.flows.clear();
    }

    /// How many flows are alive.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// The flows that have ended since it was asked last, in the order of their numbers.
    pub fn take_over(&mut self) -> Vec<Over> {
        let mut over = std::mem::take(&mut self.over);
        over.sort_unstable_by_key(|it| it.number);
        over
    }
}

impl Timeouts {
    fn of(&self, protocol: u8, done: u8) -> u64 {
        match (protocol == castanet_wire::ip_proto::TCP, done == BOTH) {
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

    fn end(host: u8, port: u16) -> End {
        (Ipv4Addr::new(10, 0, 0, host), port)
    }

    fn numbers(flows: &mut Flows) -> Vec<u32> {
        flows.take_over().iter().map(|it| it.number).collect()
    }

    fn number(
        flows: &mut Flows,
        protocol: u8,
        ends: (End, End),
        marks: Marks,
        now: u64,
    ) -> (u32, bool) {
        flows.number(protocol, ends, true, marks, now, &TIMEOUTS)
    }

    #[test]
    fn flows_are_numbered_and_have_a_direction() {
        let (mut flows, none) = (Flows::default(), Marks::default());
        let (there, back) = ((end(9, 1), end(1, 2)), (end(1, 2), end(9, 1)));
        assert_eq!(number(&mut flows, TCP, there, none, 0), (1, false));
        assert_eq!(number(&mut flows, TCP, back, none, 0), (1, true));
        assert_eq!(number(&mut flows, UDP, back, none, 0), (2, false));
        assert_eq!(number(&mut flows, UDP, there, none, 0), (2, true));
        assert_eq!(flows.find(UDP, there, true), Some((2, true)));
        assert_eq!(flows.find(UDP, (end(3, 3), end(1, 1)), true), None);
        let one_way = flows.number(UDP, there, false, none, 0, &TIMEOUTS);
        assert_eq!(one_way, (3, false));
    }

    #[test]
    fn the_flow_that_was_silent_for_longest_makes_room() {
        let (mut flows, none) = (Flows::default(), Marks::default());
        flows.set_capacity(3);
        let ends = |n: u32| ((Ipv4Addr::from_bits(n), 1), end(1, 2));
        for n in 0..3 {
            number(&mut flows, UDP, ends(n), none, 0);
        }
        number(&mut flows, UDP, ends(0), none, 1);
        for n in 3..100_000 {
            assert_eq!(number(&mut flows, TCP, ends(n), none, 1), (n + 1, false));
            // One that goes on stays.
            assert_eq!(number(&mut flows, UDP, ends(0), none, 1).0, 1);
            assert_eq!(flows.len(), 3);
            if flows.are_many_over() {
                assert_eq!(flows.take_over().len(), MANY);
            }
        }
        assert_eq!(flows.displaced(), 100_000 - 3);
        flows.set_capacity(1);
        assert_eq!((flows.len(), flows.find(UDP, ends(0), true)), (1, Some((1, false))));
    }

    #[test]
    fn flows_end_by_silence_and_by_word() {
        let (mut flows, none) = (Flows::default(), Marks::default());
        let (there, back) = ((end(1, 1), end(2, 2)), (end(2, 2), end(1, 1)));
        let fin = Marks { fin: true, ..none };
        let syn = Marks { syn: true, ..none };
        assert_eq!(number(&mut flows, UDP, there, none, 0).0, 1);
        assert_eq!(number(&mut flows, UDP, there, none, 100).0, 1);
        assert_eq!(number(&mut flows, UDP, there, none, 201).0, 2);
        assert_eq!(number(&mut flows, TCP, there, syn, 300).0, 3);
        number(&mut flows, TCP, there, fin, 301);
        assert_eq!(number(&mut flows, TCP, back, fin, 302).0, 3);
        assert_eq!(number(&mut flows, TCP, there, none, 303).0, 3);
        assert_eq!(number(&mut flows, TCP, there, syn, 304).0, 4);
        assert_eq!(number(&mut flows, TCP, there, Marks { rst: true, ..none }, 305).0, 4);
        assert_eq!(number(&mut flows, TCP, there, none, 316).0, 5);
        assert_eq!(numbers(&mut flows), [1, 3, 4]);
        flows.reap(2000, &TIMEOUTS);
        assert!(flows.is_empty());
        assert_eq!(numbers(&mut flows), [2, 5]);
        number(&mut flows, TCP, back, syn, 2000);
        number(&mut flows, TCP, back, none, 2100);
        number(&mut flows, TCP, there, none, 2200);
        flows.clear();
        let (src, dst) = back;
        let over = Over { number: 6, src, dst, first: 2000, last: 2200, packets: [2, 1] };
        assert_eq!((flows.take_over(), flows.len()), (vec![over], 0));
    }
}
