//! Fragments of IPv4 packets put together again (RFC 791, section 3.2; RFC 815).
//!
//! There is no clock here: callers say what time it is, in nanoseconds.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;

use castanet_wire::Ipv4Header;
use rapidhash::fast::RandomState;

/// Of which packet a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    src: Ipv4Addr,
    dst: Ipv4Addr,
    id: u16,
    protocol: u8,
}

/// The fragments of one packet.
#[derive(Debug)]
struct Parts {
    /// The header with its options: the first fragment's, once that is here.
    header: Vec<u8>,
    payload: Vec<u8>,
    /// What is here: first byte and byte past the last, sorted, apart from each other.
    here: Vec<(usize, usize)>,
    /// Whether the last fragment is here.
    ended: bool,
    /// Length of the longest fragment, with its header.
    longest: usize,
    /// Where in the order of ages.
    age: (u64, u64),
}

/// What became of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is kept.
    Kept,
    /// With it the packet is whole: [`Reassembler::packet`] has it.
    Whole,
    /// All of it was here already.
    Duplicate,
    /// It disagrees with others about some bytes, or about where the packet ends: as nobody can
    /// tell who is right, all are forgotten, as RFC 5722 has it for IPv6.
    Overlap,
    /// Its length is impossible.
    Malformed,
}

/// Fragments that wait for others, in bounded memory.
#[derive(Debug)]
pub struct Reassembler {
    parts: HashMap<Key, Parts, RandomState>,
    /// The longest untouched first.
    ages: BTreeMap<(u64, u64), Key>,
    serial: u64,
    used: usize,
    limit: usize,
    timeout: u64,
    packet: Vec<u8>,
    longest: usize,
}

/// What a packet counts beside its payload.
const OVERHEAD: usize = 40;
const LARGEST: usize = u16::MAX as usize;

impl Default for Reassembler {
    /// As Click has it: 256 KiB, 30 seconds.
    fn default() -> Self {
        Reassembler::new(256 << 10, 30_000_000_000)
    }
}

impl Reassembler {
    /// Keeps up to `limit` bytes, each packet's for `timeout` nanoseconds after its last fragment.
    pub fn new(limit: usize, timeout: u64) -> Self {
        Reassembler {
            parts: HashMap::default(),
            ages: BTreeMap::new(),
            serial: 0,
            used: 0,
            limit,
            timeout,
            packet: Vec::new(),
            longest: 0,
        }
    }

    /// Keeps up to `limit` bytes from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// How many packets are incomplete.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether none are.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// How many bytes are kept.
    pub fn used(&self) -> usize {
        self.used
    }

    /// The packet that was last made whole, expired or had to go.
    pub fn packet(&self) -> &[u8] {
        &self.packet
    }

    /// Length of the longest fragment of the packet that was last made whole.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// When the next packet expires, if there is any.
    pub fn next_expiry(&self) -> Option<u64> {
        let (&(touched, _), _) = self.ages.first_key_value()?;
        Some(touched.saturating_add(self.timeout))
    }

    /// Takes in a fragment, an IPv4 packet from its header on and without padding.
    pub fn insert(&mut self, datagram: &[u8], now: u64) -> Outcome {
        let Some((ip, header, payload)) = split(datagram) else { return Outcome::Malformed };
        let (start, more) = (ip.fragment_offset(), ip.more_fragments());
        let end = start + payload.len();
        let aligned = !more || payload.len().is_multiple_of(8);
        if payload.is_empty() || !aligned || header.len() + end > LARGEST {
            return Outcome::Malformed;
        }
        let key = Key { src: ip.src(), dst: ip.dst(), id: ip.id(), protocol: ip.protocol() };
        self.serial += 1;
        let age = (now, self.serial);
        let parts = self.parts.entry(key).or_insert_with(|| {
            self.used += OVERHEAD;
            Parts {
                header: header.into(),
                payload: Vec::new(),
                here: Vec::new(),
                ended: false,
                longest: 0,
                age,
            }
        });
        if !parts.agree(start, payload, more) {
            self.forget(key);
            return Outcome::Overlap;
        }
        if parts.here.iter().any(|&(from, to)| from <= start && end <= to) {
            return Outcome::Duplicate;
        }
        self.ages.remove(&parts.age);
        self.ages.insert(age, key);
        parts.age = age;
        parts.longest = parts.longest.max(datagram.len());
        let before = parts.payload.len();
        parts.add(start, payload);
        parts.ended |= !more;
        self.used += parts.payload.len() - before;
        if start == 0 {
            parts.header.clear();
            parts.header.extend(header);
        }
        if !parts.whole() {
            return Outcome::Kept;
        }
        if let Some(parts) = self.forget(key) {
            parts.write(&mut self.packet);
            self.longest = parts.longest;
        }
        Outcome::Whole
    }

    /// Forgets the packet that has waited longest, if its time has come; [`Reassembler::packet`]
    /// has what there is of it.
    pub fn expire(&mut self, now: u64) -> bool {
        self.next_expiry().is_some_and(|at| at <= now) && self.pop()
    }

    /// Forgets the packet that has waited longest, if there is too much in all: from then on
    /// until there is a quarter less than the limit.
    pub fn slim(&mut self, slimming: &mut bool) -> bool {
        *slimming |= self.used > self.limit;
        *slimming &= self.used > self.limit / 4 * 3;
        *slimming && self.pop()
    }

    fn pop(&mut self) -> bool {
        let oldest = self.ages.first_key_value().map(|(_, &key)| key);
        let parts = oldest.and_then(|key| self.forget(key));
        if let Some(parts) = &parts {
            parts.write(&mut self.packet);
        }
        parts.is_some()
    }

    fn forget(&mut self, key: Key) -> Option<Parts> {
        let parts = self.parts.remove(&key)?;
        self.ages.remove(&parts.age);
        self.used -= OVERHEAD + parts.payload.len();
        Some(parts)
    }
}

/// A packet's header, with options, and payload.
fn split(datagram: &[u8]) -> Option<(&Ipv4Header, &[u8], &[u8])> {
    let (ip, _) = Ipv4Header::from_prefix(datagram)?;
    let whole = datagram.len() == usize::from(ip.total_len()) && ip.header_len() >= Ipv4Header::LEN;
    let (header, payload) = datagram.split_at_checked(ip.header_len())?;
    whole.then_some((ip, header, payload))
}

impl Parts {
    /// Whether a fragment says the same as those that are here, as far as they meet.
    fn agree(&self, start: usize, payload: &[u8], more: bool) -> bool {
        let end = start + payload.len();
        let last = self.payload.len();
        let ends_match = match (self.ended, more) {
            (true, true) => end < last,
            (true, false) => end == last,
            (false, true) => true,
            (false, false) => end >= last,
        };
        ends_match
            && self.here.iter().all(|&(from, to)| {
                let (from, to) = (from.max(start), to.min(end));
                from >= to || self.payload[from..to] == payload[from - start..to - start]
            })
    }

    /// Puts a fragment's payload in its place.
    fn add(&mut self, start: usize, payload: &[u8]) {
        let end = start + payload.len();
        if self.payload.len() < end {
            self.payload.resize(end, 0);
        }
        self.payload[start..end].copy_from_slice(payload);
        // All that it meets or touches becomes one with it.
        let first = self.here.partition_point(|&(_, to)| to < start);
        let last = self.here.partition_point(|&(from, _)| from <= end);
        let met = &self.here[first..last];
        let from = met.first().map_or(start, |&(from, _)| from.min(start));
        let to = met.last().map_or(end, |&(_, to)| to.max(end));
        self.here.splice(first..last, [(from, to)]);
    }

    fn whole(&self) -> bool {
        self.ended && self.here == [(0, self.payload.len())]
    }

    /// Writes the packet, zeros where something is missing; if that is the beginning, it is still
    /// a later fragment.
    fn write(&self, out: &mut Vec<u8>) {
        let first = self.here.first().map_or(0, |&(from, _)| from);
        out.clear();
        out.extend(&self.header);
        out.extend(&self.payload[first..]);
        let total = out.len().min(LARGEST) as u16;
        out.truncate(total.into());
        if let Some((ip, rest)) = Ipv4Header::from_prefix_mut(out) {
            ip.set_total_len(total);
            ip.set_more_fragments(!self.ended);
            ip.set_fragment_offset(first);
            let options = ip.header_len().saturating_sub(Ipv4Header::LEN);
            ip.update_checksum(rest.get(..options).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment;
    use castanet_wire::sketch;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn built(text: &str) -> Vec<u8> {
        sketch::build(text).unwrap_or_else(|e| panic!("{text}: {e}")).bytes
    }

    fn printed(bytes: &[u8]) -> String {
        sketch::print(bytes, sketch::Layer::Network)
    }

    fn pieces(packet: &[u8], mtu: usize) -> Vec<Vec<u8>> {
        let (ip, header, payload) = split(packet).expect("a packet");
        let _ = ip;
        let cut = fragment::divide(header, payload.len(), mtu).expect("can be divided");
        cut.map(|piece| {
            let mut out = [0; 60];
            let len = piece.write_header(header, &mut out);
            [&out[..len], &payload[piece.start..piece.start + piece.length]].concat()
        })
        .collect()
    }

    fn part(offset: usize, more: bool, data: &str) -> Vec<u8> {
        let more = if more { "+" } else { "" };
        built(&format!("1.0.0.1 > 2.0.0.2 proto 99 id 7 frag {offset}{more} data {data}"))
    }

    const EIGHT: &str = "0101010101010101";

    #[test]
    fn overlaps_are_safe() {
        let mut r = Reassembler::default();
        let other = "0202020202020202";
        assert_eq!(r.insert(&part(8, true, EIGHT), 0), Outcome::Kept);
        assert_eq!(r.insert(&part(8, true, EIGHT), 0), Outcome::Duplicate);
        let two = format!("{EIGHT}{EIGHT}");
        assert_eq!(r.insert(&part(0, true, &two), 0), Outcome::Kept, "agrees where they meet");
        assert_eq!(r.insert(&part(8, true, other), 0), Outcome::Overlap);
        assert_eq!((r.len(), r.used()), (0, 0));
        // Two ends, and something behind the end.
        for (first, second) in [(16, 24), (24, 16)] {
            assert_eq!(r.insert(&part(first, false, EIGHT), 0), Outcome::Kept);
            assert_eq!(r.insert(&part(second, false, EIGHT), 0), Outcome::Overlap);
        }
        assert_eq!(r.insert(&part(16, false, EIGHT), 0), Outcome::Kept);
        assert_eq!(r.insert(&part(24, true, EIGHT), 0), Outcome::Overlap);
        assert!(r.is_empty() && r.ages.is_empty());
    }

    #[test]
    fn impossible_fragments_are_refused() {
        let mut r = Reassembler::default();
        let mut long = part(65528, false, EIGHT);
        assert_eq!(r.insert(&long, 0), Outcome::Malformed);
        long.truncate(19);
        assert_eq!(r.insert(&long, 0), Outcome::Malformed);
        assert_eq!(r.insert(&part(0, true, "010101"), 0), Outcome::Malformed);
        let empty = built("1.0.0.1 > 2.0.0.2 proto 99 id 7 frag 8 len 20");
        assert_eq!(r.insert(&empty, 0), Outcome::Malformed);
        assert!(r.is_empty());
    }

    #[test]
    fn what_does_not_come_together_goes() {
        let mut r = Reassembler::new(1000, 30 * SECOND);
        r.insert(&part(0, true, EIGHT), 0);
        r.insert(&part(16, true, EIGHT), 10 * SECOND);
        assert_eq!(r.next_expiry(), Some(40 * SECOND));
        assert!(!r.expire(39 * SECOND) && r.expire(40 * SECOND) && !r.expire(40 * SECOND));
        let gap = "0000000000000000";
        let wanted =
            built(&format!("1.0.0.1 > 2.0.0.2 proto 99 id 7 frag 0+ data {EIGHT}{gap}{EIGHT}"));
        assert_eq!(printed(r.packet()), printed(&wanted));
        r.insert(&part(16, false, EIGHT), 0);
        assert!(r.expire(30 * SECOND));
        assert_eq!(printed(r.packet()), printed(&part(16, false, EIGHT)), "still a later fragment");
        for id in 0..30 {
            let text = format!("1.0.0.1 > 2.0.0.2 proto 99 id {id} frag 0+ data {EIGHT}");
            r.insert(&built(&text), id);
        }
        let (mut slimming, mut gone) = (false, 0);
        while r.slim(&mut slimming) {
            gone += 1;
        }
        assert!(r.used() <= 750 && gone == 30 - r.len(), "{gone} of 30");
        assert_eq!(r.len(), r.ages.len());
    }

    proptest! {
        #[test]
        fn fragments_in_any_order_make_up_the_packet(
            payload in prop::collection::vec(any::<u8>(), 1..3000), mtu in 28usize..700,
            order in any::<u64>(), options in 0usize..3, again in any::<bool>(),
        ) {
            let option = ["", " ipopt 0x94040000", " ipopt 0x07070400000000"][options];
            let data: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
            let packet = built(&format!("1.0.0.1 > 2.0.0.2 proto 99 id 7{option} data {data}"));
            prop_assume!(mtu >= 28 + 8 * options && packet.len() > mtu);
            let mut all = pieces(&packet, mtu);
            // Fragments of fragments, and each twice.
            if again {
                let mut smaller: Vec<_> = all.iter().flat_map(|one| {
                    let smaller = mtu * 2 / 3;
                    if smaller >= 28 + 8 * options && one.len() > smaller { pieces(one, smaller) } else { vec![one.clone()] }
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
                    Outcome::Whole => {
                        whole += 1;
                        prop_assert_eq!(printed(r.packet()), printed(&packet));
                        break;
                    }
                    Outcome::Kept | Outcome::Duplicate => {}
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            prop_assert_eq!(whole, 1);
            prop_assert_eq!((r.len(), r.used(), r.ages.len()), (0, 0, 0));
        }

        #[test]
        fn memory_is_accounted_for(
            steps in prop::collection::vec((0usize..40, 1usize..5, any::<bool>(), 0u16..6, 0u8..2), 1..200),
        ) {
            let mut r = Reassembler::new(2000, SECOND);
            let mut slimming = false;
            for (n, (at, eights, more, id, byte)) in steps.into_iter().enumerate() {
                let data = format!("{byte:02x}").repeat(eights * 8);
                let more = if more { "+" } else { "" };
                let offset = at * 8;
                let text = format!("1.0.0.1 > 2.0.0.2 proto 9 id {id} frag {offset}{more} data {data}");
                r.insert(&built(&text), n as u64 * SECOND / 50);
                while r.slim(&mut slimming) {}
                r.expire(n as u64 * SECOND / 50);
                let used: usize = r.parts.values().map(|p| OVERHEAD + p.payload.len()).sum();
                prop_assert_eq!(r.used(), used);
                prop_assert!(used <= 2000 && r.ages.len() == r.len());
                for parts in r.parts.values() {
                    let apart = parts.here.windows(2).all(|pair| pair[0].1 < pair[1].0);
                    prop_assert!(apart && parts.here.iter().all(|(from, to)| from < to));
                }
            }
        }
    }
}
