//! The entry of one connection.

use super::mapping::Direction;
use super::rule_refs::RuleRefs;
use super::tuple::{Family, Tuple};
use crate::rule_set::Timeouts;
use castanet_kit::flow::Flow;
use castanet_wire::ip_proto;
use castanet_wire::tcp::flag;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

const SECOND: u64 = 1_000_000_000;

/// The entry of a connection. Its first key is the original tuple; a translated connection also has
/// the key of the translated tuple. With an IPv4 key and its slot an entry takes one cache line.
/// Workers with shared access update the atomic fields, and store only if the value changes.
#[derive(Default, Debug)]
pub(crate) struct ConntrackEntry<K> {
    /// Key of the translated tuple; all zeros without translation.
    second: K,
    /// The rules of the connection.
    pub(super) rule_refs: RuleRefs,
    /// Index of its offsets in [`SeqOffsets`](super::seq_offsets::SeqOffsets), if it has any.
    pub(super) offsets: Option<NonZeroU32>,
    /// TCP flags seen in the original and in the reply direction.
    flags: [AtomicU8; 2],
    /// [`SWAPPED`] and [`HAS_REPLY`].
    bits: AtomicU8,
}

/// For both keys: whether packets of the original direction come from the greater end.
const SWAPPED: [u8; 2] = [1, 2];
/// Whether a reply has been seen.
const HAS_REPLY: u8 = 4;

impl<K: Family> Flow for ConntrackEntry<K> {
    type Key = K;
    #[inline]
    fn second_key(&self) -> Option<&K> {
        (self.second != K::default()).then_some(&self.second)
    }
}

impl<K: Family> ConntrackEntry<K> {
    /// Creates an entry and its first key for an original and a translated tuple.
    pub(super) fn new(from: &Tuple, to: &Tuple) -> (K, ConntrackEntry<K>) {
        let (first, swapped) = K::from_tuple(from).ordered();
        let (second, mapped) = K::from_tuple(to).ordered();
        let second = if from != to && second != first { second } else { K::default() };
        let bits = (u8::from(swapped) * SWAPPED[0]) | (u8::from(mapped) * SWAPPED[1]);
        (first, ConntrackEntry { second, bits: bits.into(), ..ConntrackEntry::default() })
    }

    #[inline]
    fn has(&self, bit: u8) -> bool {
        self.bits.load(Relaxed) & bit != 0
    }

    /// The TCP flags that were seen, forward and in reverse.
    #[inline]
    pub(super) fn flags(&self) -> [u8; 2] {
        self.flags.each_ref().map(|flags| flags.load(Relaxed))
    }

    #[inline]
    fn is_swapped(&self, is_second: bool) -> bool {
        self.has(SWAPPED[usize::from(is_second)])
    }

    /// Whether a packet came in reverse.
    pub(super) fn has_reply(&self) -> bool {
        self.has(HAS_REPLY)
    }

    /// Returns the direction of a packet that was found by the first or second key with its ends in
    /// this order.
    #[inline]
    pub(super) fn direction(&self, is_second: bool, swapped: bool) -> Direction {
        match swapped == self.is_swapped(is_second) {
            true => Direction::Original,
            false => Direction::Reply,
        }
    }

    /// Returns the original tuple and the translated one, both in the original direction.
    #[inline]
    pub(super) fn tuples(&self, first: &K) -> (K, K) {
        let turned = |key: K, swap: bool| if swap { key.reversed() } else { key };
        let from = turned(*first, self.is_swapped(false));
        let to = self.second_key().map_or(from, |second| turned(*second, self.is_swapped(true)));
        (from, to)
    }

    /// Whether packets of the connection are rewritten.
    #[inline]
    pub(super) fn is_translated(&self) -> bool {
        self.second_key().is_some() || self.offsets.is_some()
    }

    /// Records a packet.
    #[inline]
    pub(super) fn record(&self, direction: Direction, tcp_flags: u8) {
        let add = |place: &AtomicU8, bits: u8| {
            if place.load(Relaxed) & bits != bits {
                place.fetch_or(bits, Relaxed);
            }
        };
        add(&self.flags[direction as usize], tcp_flags);
        add(&self.bits, if direction == Direction::Reply { HAS_REPLY } else { 0 });
    }

    /// Whether both sides of a TCP connection have sent SYN and ACK, and neither FIN nor RST.
    #[inline]
    pub(super) fn is_established(&self) -> bool {
        let [forward, reverse] = self.flags();
        let agreed = flag::SYN | flag::ACK;
        forward & reverse & agreed == agreed && (forward | reverse) & (flag::FIN | flag::RST) == 0
    }

    /// Whether the entry may be evicted: no reply has been seen, or TCP has ended, or the initiator
    /// has not acknowledged the SYN-ACK. A reply of the server alone proves nothing: it answers
    /// each SYN of a flood.
    pub(super) fn is_evictable(&self) -> bool {
        let [forward, reverse] = self.flags();
        let ended = (forward | reverse) & flag::RST != 0 || forward & reverse & flag::FIN != 0;
        // An entry without flags is not TCP.
        let is_half_open = forward != 0 && forward & flag::ACK == 0;
        !self.has_reply() || ended || is_half_open
    }

    /// Returns the timeout from now on, in nanoseconds.
    #[inline]
    pub(super) fn timeout(&self, proto: u8, timeouts: &Timeouts) -> u64 {
        let seconds = match proto {
            ip_proto::TCP if self.is_established() => timeouts.tcp_established,
            ip_proto::TCP => timeouts.tcp_transient,
            _ => timeouts.udp,
        };
        u64::from(seconds) * SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_kit::flow::Tuple4;

    #[test]
    fn an_ipv4_entry_with_key_and_slot_fits_a_cache_line() {
        const PLACE: usize = 12;
        assert!(size_of::<Tuple4>() + PLACE + size_of::<ConntrackEntry<Tuple4>>() <= 64);
    }
}
