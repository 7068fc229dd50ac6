//! Reassembly of IPv4 fragments (RFC 791, section 3.2; RFC 815).
//!
//! There is no clock: callers pass the time in nanoseconds.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use castanet_wire::{Ipv4Header, udp};
use rapidhash::fast::RandomState;

/// The key of the packet that a fragment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    src: Ipv4Addr,
    dst: Ipv4Addr,
    id: u16,
    protocol: u8,
}

/// The fragments of an incomplete packet.
#[derive(Debug)]
struct PartialPacket {
    /// The header with its options: that of the first fragment, once it came.
    header: Vec<u8>,
    payload: Vec<u8>,
    /// The received ranges, start and end, sorted and disjoint.
    ranges: Vec<(usize, usize)>,
    /// Whether the last fragment came.
    has_last: bool,
    /// The length of the longest fragment with its header.
    longest_fragment: usize,
    /// The key in `by_age`.
    age: (u64, u64),
}

/// The result of inserting a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertResult {
    /// The fragment is stored.
    Stored,
    /// The packet is complete: [`Reassembler::packet`] returns it.
    Complete,
    /// All of its bytes had been received.
    Duplicate,
    /// The fragment contradicts others about some bytes or about the end of the packet. As it is
    /// unknown which one is right, all are dropped, as RFC 5722 requires for IPv6.
    Overlap,
    /// Its length is invalid.
    Malformed,
}

/// Incomplete packets, in bounded memory.
#[derive(Debug)]
pub struct Reassembler {
    packets: HashMap<Key, PartialPacket, RandomState>,
    /// Packets by the time of their last fragment, the oldest first.
    by_age: BTreeMap<(u64, u64), Key>,
    serial: u64,
    used: usize,
    limit: usize,
    timeout: u64,
    packet: Vec<u8>,
    longest_fragment: usize,
    counts: ReassemblyCounts,
}

/// Counts of fragments and packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReassemblyCounts {
    /// Fragments that were inserted, valid or not.
    pub seen: u64,
    /// Packets that were completed.
    pub complete: u64,
    /// Packets that expired or were evicted.
    pub failed: u64,
    /// Fragments with an invalid length, or that contradict others.
    pub bad: u64,
}

/// The memory that a packet counts for beside its payload.
const OVERHEAD: usize = 40;
const MAX_PACKET: usize = u16::MAX as usize;

impl Default for Reassembler {
    /// Click's defaults: 256 KiB, 30 seconds.
    fn default() -> Self {
        Reassembler::new(256 << 10, 30_000_000_000)
    }
}

impl Reassembler {
    /// Stores up to `limit` bytes, each packet for `timeout` nanoseconds after its last fragment.
    pub fn new(limit: usize, timeout: u64) -> Self {
        Reassembler {
            packets: HashMap::default(),
            by_age: BTreeMap::new(),
            serial: 0,
            used: 0,
            limit,
            timeout,
            packet: Vec::new(),
            longest_fragment: 0,
            counts: ReassemblyCounts::default(),
        }
    }

    /// The counts, and the ranges of bytes that have come of each incomplete packet, in Click's form.
    pub fn listing(&self) -> String {
        let ReassemblyCounts { seen, complete, failed, bad } = self.counts;
        let mut text = format!(
            "frags seen total:    {seen}\ngood reassemblies:   {complete}\n\
             failed reassemblies: {failed}\nbad fragments seen:  {bad}\ncached chunk data:\n"
        );
        for key in self.by_age.values() {
            let Some(partial) = self.packets.get(key) else { continue };
            let has_ports = partial.ranges.first().is_some_and(|first| first.0 == 0);
            let ports = udp::ports(&partial.payload).filter(|_| has_ports);
            let (src, dst) = ports.unwrap_or_default();
            let _ = write!(text, " ({}, {src}, {}, {dst}) {}", key.src, key.dst, key.id);
            for (from, to) in &partial.ranges {
                let _ = write!(text, " ({from},{to})");
            }
            text.push('\n');
        }
        text
    }

    /// Sets the limit in bytes.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// How many packets are incomplete.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether no packet is incomplete.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// How many bytes are stored.
    pub fn used(&self) -> usize {
        self.used
    }

    /// The last packet that was completed, expired or evicted.
    pub fn packet(&self) -> &[u8] {
        &self.packet
    }

    /// The length of the longest fragment of the last completed packet.
    pub fn longest(&self) -> usize {
        self.longest_fragment
    }

    /// The time at which the next packet expires, if there is one.
    pub fn next_expiry(&self) -> Option<u64> {
        let (&(touched, _), _) = self.by_age.first_key_value()?;
        Some(touched.saturating_add(self.timeout))
    }

    /// Inserts a fragment: an IPv4 packet from its header on, without padding.
    pub fn insert(&mut self, datagram: &[u8], now: u64) -> InsertResult {
        let result = self.insert_uncounted(datagram, now);
        self.counts.seen += 1;
        match result {
            InsertResult::Complete => self.counts.complete += 1,
            InsertResult::Overlap | InsertResult::Malformed => self.counts.bad += 1,
            InsertResult::Stored | InsertResult::Duplicate => {}
        }
        result
    }

    fn insert_uncounted(&mut self, datagram: &[u8], now: u64) -> InsertResult {
        let Some((ip, header, payload)) = split(datagram) else { return InsertResult::Malformed };
        let (start, more) = (ip.fragment_offset(), ip.more_fragments());
        let end = start + payload.len();
        let aligned = !more || payload.len().is_multiple_of(8);
        if payload.is_empty() || !aligned || header.len() + end > MAX_PACKET {
            return InsertResult::Malformed;
        }
        let key = Key { src: ip.src(), dst: ip.dst(), id: ip.id(), protocol: ip.protocol() };
        self.serial += 1;
        let age = (now, self.serial);
        let partial = self.packets.entry(key).or_insert_with(|| {
            self.used += OVERHEAD;
            PartialPacket {
                header: header.into(),
                payload: Vec::new(),
                ranges: Vec::new(),
                has_last: false,
                longest_fragment: 0,
                age,
            }
        });
        if !partial.is_consistent(start, payload, more) {
            self.remove(key);
            return InsertResult::Overlap;
        }
        if partial.ranges.iter().any(|&(from, to)| from <= start && end <= to) {
            return InsertResult::Duplicate;
        }
        self.by_age.remove(&partial.age);
        self.by_age.insert(age, key);
        partial.age = age;
        partial.longest_fragment = partial.longest_fragment.max(datagram.len());
        let before = partial.payload.len();
        partial.add(start, payload);
        partial.has_last |= !more;
        self.used += partial.payload.len() - before;
        if start == 0 {
            partial.header.clear();
            partial.header.extend(header);
        }
        if !partial.is_complete() {
            return InsertResult::Stored;
        }
        if let Some(partial) = self.remove(key) {
            partial.write(&mut self.packet);
            self.longest_fragment = partial.longest_fragment;
        }
        InsertResult::Complete
    }

    /// Removes the packet that has been idle longest, if it has expired; [`Reassembler::packet`]
    /// then returns its incomplete contents.
    pub fn expire(&mut self, now: u64) -> bool {
        self.next_expiry().is_some_and(|at| at <= now) && self.remove_oldest()
    }

    /// Evicts the packet that has been idle longest, if there is too much in memory. Once over the
    /// limit, the caller repeats this down to three quarters of it; `evicting` holds that state.
    pub fn evict_surplus(&mut self, evicting: &mut bool) -> bool {
        *evicting |= self.used > self.limit;
        *evicting &= self.used > self.limit / 4 * 3;
        *evicting && self.remove_oldest()
    }

    fn remove_oldest(&mut self) -> bool {
        let oldest = self.by_age.first_key_value().map(|(_, &key)| key);
        let partial = oldest.and_then(|key| self.remove(key));
        if let Some(partial) = &partial {
            partial.write(&mut self.packet);
            self.counts.failed += 1;
        }
        partial.is_some()
    }

    fn remove(&mut self, key: Key) -> Option<PartialPacket> {
        let partial = self.packets.remove(&key)?;
        self.by_age.remove(&partial.age);
        self.used -= OVERHEAD + partial.payload.len();
        Some(partial)
    }
}

/// A packet's header, its bytes with options, and the payload.
fn split(datagram: &[u8]) -> Option<(&Ipv4Header, &[u8], &[u8])> {
    let (ip, _) = Ipv4Header::from_prefix(datagram)?;
    let whole = datagram.len() == usize::from(ip.total_len()) && ip.header_len() >= Ipv4Header::LEN;
    let (header, payload) = datagram.split_at_checked(ip.header_len())?;
    whole.then_some((ip, header, payload))
}

impl PartialPacket {
    /// Whether a fragment has the same bytes as the received ones where they overlap.
    fn is_consistent(&self, start: usize, payload: &[u8], more: bool) -> bool {
        let end = start + payload.len();
        let last = self.payload.len();
        let ends_match = match (self.has_last, more) {
            (true, true) => end < last,
            (true, false) => end == last,
            (false, true) => true,
            (false, false) => end >= last,
        };
        ends_match
            && self.ranges.iter().all(|&(from, to)| {
                let (from, to) = (from.max(start), to.min(end));
                from >= to || self.payload[from..to] == payload[from - start..to - start]
            })
    }

    /// Stores a fragment's payload.
    fn add(&mut self, start: usize, payload: &[u8]) {
        let end = start + payload.len();
        if self.payload.len() < end {
            self.payload.resize(end, 0);
        }
        self.payload[start..end].copy_from_slice(payload);
        // Ranges that overlap or touch the new one are merged with it.
        let first = self.ranges.partition_point(|&(_, to)| to < start);
        let last = self.ranges.partition_point(|&(from, _)| from <= end);
        let merged = &self.ranges[first..last];
        let from = merged.first().map_or(start, |&(from, _)| from.min(start));
        let to = merged.last().map_or(end, |&(_, to)| to.max(end));
        self.ranges.splice(first..last, [(from, to)]);
    }

    fn is_complete(&self) -> bool {
        self.has_last && self.ranges == [(0, self.payload.len())]
    }

    /// Writes the packet, with zeros for missing parts. If the start is missing, the result is a
    /// later fragment.
    fn write(&self, out: &mut Vec<u8>) {
        let first = self.ranges.first().map_or(0, |&(from, _)| from);
        out.clear();
        out.extend(&self.header);
        out.extend(&self.payload[first..]);
        let total = out.len().min(MAX_PACKET) as u16;
        out.truncate(total.into());
        if let Some((ip, rest)) = Ipv4Header::from_prefix_mut(out) {
            ip.set_total_len(total);
            ip.set_more_fragments(!self.has_last);
            ip.set_fragment_offset(first);
            let options = ip.header_len().saturating_sub(Ipv4Header::LEN);
            ip.update_checksum(rest.get(..options).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_wire::sketch;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn build(text: &str) -> Vec<u8> {
        sketch::build(text).unwrap_or_else(|e| panic!("{text}: {e}")).bytes
    }

    fn print(bytes: &[u8]) -> String {
        sketch::print(bytes, sketch::Layer::Network)
    }

    fn fragments(packet: &[u8], mtu: usize) -> Vec<Vec<u8>> {
        let (ip, header, payload) = split(packet).expect("a packet");
        let _ = ip;
        let cut = crate::fragment::divide(header, payload.len(), mtu).expect("can be divided");
        cut.map(|fragment| {
            let mut out = [0; 60];
            let len = fragment.write_header(header, &mut out);
            [&out[..len], &payload[fragment.start..fragment.start + fragment.length]].concat()
        })
        .collect()
    }

    fn fragment_at(offset: usize, more: bool, data: &str) -> Vec<u8> {
        let more = if more { "+" } else { "" };
        build(&format!("1.0.0.1 > 2.0.0.2 proto 99 id 7 frag {offset}{more} data {data}"))
    }

    const EIGHT: &str = "0101010101010101";

    #[test]
    fn overlaps_are_safe() {
        let mut r = Reassembler::default();
        let other = "0202020202020202";
        assert_eq!(r.insert(&fragment_at(8, true, EIGHT), 0), InsertResult::Stored);
        assert_eq!(r.insert(&fragment_at(8, true, EIGHT), 0), InsertResult::Duplicate);
        let two = format!("{EIGHT}{EIGHT}");
        assert_eq!(
            r.insert(&fragment_at(0, true, &two), 0),
            InsertResult::Stored,
            "agrees where they meet"
        );
        assert_eq!(r.insert(&fragment_at(8, true, other), 0), InsertResult::Overlap);
        assert_eq!((r.len(), r.used()), (0, 0));
        // Two ends, and a fragment behind the end.
        for (first, second) in [(16, 24), (24, 16)] {
            assert_eq!(r.insert(&fragment_at(first, false, EIGHT), 0), InsertResult::Stored);
            assert_eq!(r.insert(&fragment_at(second, false, EIGHT), 0), InsertResult::Overlap);
        }
        assert_eq!(r.insert(&fragment_at(16, false, EIGHT), 0), InsertResult::Stored);
        assert_eq!(r.insert(&fragment_at(24, true, EIGHT), 0), InsertResult::Overlap);
        assert!(r.is_empty() && r.by_age.is_empty());
    }

    #[test]
    fn impossible_fragments_are_refused() {
        let mut r = Reassembler::default();
        let mut long = fragment_at(65528, false, EIGHT);
        assert_eq!(r.insert(&long, 0), InsertResult::Malformed);
        long.truncate(19);
        assert_eq!(r.insert(&long, 0), InsertResult::Malformed);
        assert_eq!(r.insert(&fragment_at(0, true, "010101"), 0), InsertResult::Malformed);
        let empty = build("1.0.0.1 > 2.0.0.2 proto 99 id 7 frag 8 len 20");
        assert_eq!(r.insert(&empty, 0), InsertResult::Malformed);
        assert!(r.is_empty());
    }

    #[test]
    fn incomplete_packets_expire_or_are_evicted() {
        let mut r = Reassembler::new(1000, 30 * SECOND);
        r.insert(&fragment_at(0, true, EIGHT), 0);
        r.insert(&fragment_at(16, true, EIGHT), 10 * SECOND);
        assert_eq!(r.next_expiry(), Some(40 * SECOND));
        assert!(!r.expire(39 * SECOND) && r.expire(40 * SECOND) && !r.expire(40 * SECOND));
        let gap = "0000000000000000";
        let expected =
            build(&format!("1.0.0.1 > 2.0.0.2 proto 99 id 7 frag 0+ data {EIGHT}{gap}{EIGHT}"));
        assert_eq!(print(r.packet()), print(&expected));
        r.insert(&fragment_at(16, false, EIGHT), 0);
        assert!(r.expire(30 * SECOND));
        assert_eq!(
            print(r.packet()),
            print(&fragment_at(16, false, EIGHT)),
            "still a later fragment"
        );
        for id in 0..30 {
            let text = format!("1.0.0.1 > 2.0.0.2 proto 99 id {id} frag 0+ data {EIGHT}");
            r.insert(&build(&text), id);
        }
        let (mut evicting, mut evicted) = (false, 0);
        while r.evict_surplus(&mut evicting) {
            evicted += 1;
        }
        assert!(r.used() <= 750 && evicted == 30 - r.len(), "{evicted} of 30");
        assert_eq!(r.len(), r.by_age.len());
    }

    proptest! {
        #[test]
        fn fragments_in_any_order_make_up_the_packet(
            payload in prop::collection::vec(any::<u8>(), 1..3000), mtu in 28usize..700,
            order in any::<u64>(), options in 0usize..3, again in any::<bool>(),
        ) {
            let option = ["", " ipopt 0x94040000", " ipopt 0x07070400000000"][options];
            let data: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
            let packet = build(&format!("1.0.0.1 > 2.0.0.2 proto 99 id 7{option} data {data}"));
            prop_assume!(mtu >= 28 + 8 * options && packet.len() > mtu);
            let mut all = fragments(&packet, mtu);
            // Fragments of fragments, and each twice.
            if again {
                let mut smaller: Vec<_> = all.iter().flat_map(|one| {
                    let smaller = mtu * 2 / 3;
                    if smaller >= 28 + 8 * options && one.len() > smaller { fragments(one, smaller) } else { vec![one.clone()] }
                }).collect();
                smaller.extend(all.clone());
                all = smaller;
            }
            let mut seed = order | 1;
            for i in (1..all.len()).rev() {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                all.swap(i, (seed >> 33) as usize % (i + 1));
            }
            let mut r = Reassembler::new(1 << 20, SECOND);
            let mut whole = 0;
            for (n, one) in all.iter().enumerate() {
                match r.insert(one, n as u64) {
                    InsertResult::Complete => {
                        whole += 1;
                        prop_assert_eq!(print(r.packet()), print(&packet));
                        break;
                    }
                    InsertResult::Stored | InsertResult::Duplicate => {}
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            prop_assert_eq!(whole, 1);
            prop_assert_eq!((r.len(), r.used(), r.by_age.len()), (0, 0, 0));
        }

        #[test]
        fn memory_is_accounted_for(
            steps in prop::collection::vec((0usize..40, 1usize..5, any::<bool>(), 0u16..6, 0u8..2), 1..200),
        ) {
            let mut r = Reassembler::new(2000, SECOND);
            let mut evicting = false;
            for (n, (at, eights, more, id, byte)) in steps.into_iter().enumerate() {
                let data = format!("{byte:02x}").repeat(eights * 8);
                let more = if more { "+" } else { "" };
                let offset = at * 8;
                let text = format!("1.0.0.1 > 2.0.0.2 proto 9 id {id} frag {offset}{more} data {data}");
                r.insert(&build(&text), n as u64 * SECOND / 50);
                while r.evict_surplus(&mut evicting) {}
                r.expire(n as u64 * SECOND / 50);
                let used: usize = r.packets.values().map(|p| OVERHEAD + p.payload.len()).sum();
                prop_assert_eq!(r.used(), used);
                prop_assert!(used <= 2000 && r.by_age.len() == r.len());
                for partial in r.packets.values() {
                    let apart = partial.ranges.windows(2).all(|pair| pair[0].1 < pair[1].0);
                    prop_assert!(apart && partial.ranges.iter().all(|(from, to)| from < to));
                }
            }
        }
    }
}
