//! What is kept of a connection.

use super::key::{Ends, Family};
use super::mapping::Direction;
use super::own::Own;
use crate::rules::Timeouts;
use castanet_kit::flow::Flow;
use castanet_wire::ip_proto;
use castanet_wire::tcp::flag;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

const SECOND: u64 = 1_000_000_000;

/// What is kept of a connection. The key that it is found by is that of its ends as
/// they come; where they are mapped, there is a second. With IPv4 keys and its place in the
/// table that is a line of the cache. What each packet may change, several workers may change
/// at once; what they find as it should be, they do not write.
#[derive(Default, Debug)]
pub(crate) struct Tracked<K> {
    /// The key of the ends as they are mapped; all zeros, where they are not.
    second: K,
    /// Its rules.
    pub(super) own: Own,
    /// By how much numbers in its packets are shifted: a number of
    /// [`Shelf`](super::shelf::Shelf), if they are.
    pub(super) shifts: Option<NonZeroU32>,
    /// The TCP flags that were seen, forward and in reverse.
    flags: [AtomicU8; 2],
    /// [`SWAPPED`] and [`ANSWERED`].
    bits: AtomicU8,
}

/// Of both keys: whether packets forward come from the greater end.
const SWAPPED: [u8; 2] = [1, 2];
/// Whether a packet came in reverse.
const ANSWERED: u8 = 4;

impl<K: Family> Flow for Tracked<K> {
    type Key = K;
    #[inline]
    fn second_key(&self) -> Option<&K> {
        (self.second != K::default()).then_some(&self.second)
    }
}

impl<K: Family> Tracked<K> {
    /// A connection from these ends, which become others; and its first key.
    pub(super) fn new(from: &Ends, to: &Ends) -> (K, Tracked<K>) {
        let (first, swapped) = K::of(from).ordered();
        let (second, mapped) = K::of(to).ordered();
        let second = if from != to && second != first { second } else { K::default() };
        let bits = (u8::from(swapped) * SWAPPED[0]) | (u8::from(mapped) * SWAPPED[1]);
        (first, Tracked { second, bits: bits.into(), ..Tracked::default() })
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
    pub(super) fn is_answered(&self) -> bool {
        self.has(ANSWERED)
    }

    /// Which way a packet goes whose tuple was found, by the second key or not, in
    /// this order.
    #[inline]
    pub(super) fn direction(&self, is_second: bool, swapped: bool) -> Direction {
        match swapped == self.is_swapped(is_second) {
            true => Direction::Forward,
            false => Direction::Reverse,
        }
    }

    /// The keys of packets forward, as they come and as they are mapped.
    #[inline]
    pub(super) fn ends(&self, first: &K) -> (K, K) {
        let turned = |key: K, swap: bool| if swap { key.reversed() } else { key };
        let from = turned(*first, self.is_swapped(false));
        let to = self.second_key().map_or(from, |second| turned(*second, self.is_swapped(true)));
        (from, to)
    }

    /// Whether anything changes in its packets.
    #[inline]
    pub(super) fn changes(&self) -> bool {
        self.second_key().is_some() || self.shifts.is_some()
    }

    /// Takes note of a packet.
    #[inline]
    pub(super) fn see(&self, direction: Direction, tcp_flags: u8) {
        let add = |place: &AtomicU8, bits: u8| {
            if place.load(Relaxed) & bits != bits {
                place.fetch_or(bits, Relaxed);
            }
        };
        add(&self.flags[direction as usize], tcp_flags);
        add(&self.bits, if direction == Direction::Reverse { ANSWERED } else { 0 });
    }

    /// Whether both sides of a TCP connection have agreed, and none has ended it.
    #[inline]
    pub(super) fn is_established(&self) -> bool {
        let [forward, reverse] = self.flags();
        let agreed = flag::SYN | flag::ACK;
        forward & reverse & agreed == agreed && (forward | reverse) & (flag::FIN | flag::RST) == 0
    }

    /// Whether it may make room for others: it was never answered, or it is TCP that has
    /// ended, or whose beginner has not answered in turn. That a server answers is no sign
    /// of life: it does so to each SYN of a flood.
    pub(super) fn may_go(&self) -> bool {
        let [forward, reverse] = self.flags();
        let ended = (forward | reverse) & flag::RST != 0 || forward & reverse & flag::FIN != 0;
        // Without flags it is not TCP.
        let is_half_open = forward != 0 && forward & flag::ACK == 0;
        !self.is_answered() || ended || is_half_open
    }

    /// How long it is kept from now on, in nanoseconds.
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
    fn a_connection_of_ipv4_is_a_line_with_its_key_and_place() {
        const PLACE: usize = 12;
        assert!(size_of::<Tuple4>() + PLACE + size_of::<Tracked<Tuple4>>() <= 64);
    }
}
