//! What is kept of a connection.

use super::key::Ends;
use super::mapping::{Direction, Shifts};
use crate::rules::Timeouts;
use castanet_kit::flow::{Flow, Tuple6};
use castanet_wire::ip_proto;
use castanet_wire::tcp::flag;

const SECOND: u64 = 1_000_000_000;

/// What is kept of a connection. The key that it is found by is that of its ends as
/// they come; where they are mapped, there is a second.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tracked {
    /// The key of the ends as they are mapped.
    second: Option<Tuple6>,
    /// Of both keys: whether packets forward come from the greater end.
    swapped: [bool; 2],
    /// Whether the packets are of IPv6.
    pub(super) is_ip6: bool,
    /// The TCP flags that were seen, forward and in reverse.
    pub(super) flags: [u8; 2],
    /// Whether a packet came in reverse.
    pub(super) answered: bool,
    /// Its rules, a number of [`super::table::Lists`].
    pub(super) list: u32,
    /// The identifier of the last rule there was when it began: where a younger
    /// one stands, its own has gone.
    pub(super) since: u64,
    /// By how much numbers in its packets are shifted.
    pub(super) shifts: Shifts,
}

impl Flow for Tracked {
    type Key = Tuple6;
    fn second(&self) -> Option<&Tuple6> {
        self.second.as_ref()
    }
}

impl Tracked {
    /// A connection from these ends, which become others; and its first key.
    pub(super) fn new(from: &Ends, to: &Ends) -> (Tuple6, Tracked) {
        let (first, swapped) = from.tuple().ordered();
        let (second, mapped) = to.tuple().ordered();
        let second = (from != to).then_some(second).filter(|second| *second != first);
        let tracked = Tracked {
            second,
            swapped: [swapped, mapped],
            is_ip6: from.is_ip6,
            ..Tracked::default()
        };
        (first, tracked)
    }

    /// Which way a packet goes whose tuple was found, by the second key or not, in
    /// this order.
    pub(super) fn direction(&self, is_second: bool, swapped: bool) -> Direction {
        match swapped == self.swapped[usize::from(is_second)] {
            true => Direction::Forward,
            false => Direction::Reverse,
        }
    }

    /// The ends of packets forward, as they come and as they are mapped.
    pub(super) fn ends(&self, first: &Tuple6) -> (Ends, Ends) {
        let turned = |tuple: Tuple6, swap: bool| if swap { tuple.reversed() } else { tuple };
        let from = turned(*first, self.swapped[0]);
        let to = self.second.map_or(from, |second| turned(second, self.swapped[1]));
        (Ends::of(from, self.is_ip6), Ends::of(to, self.is_ip6))
    }

    /// Takes note of a packet.
    pub(super) fn see(&mut self, direction: Direction, tcp_flags: u8) {
        self.flags[direction as usize] |= tcp_flags;
        self.answered |= direction == Direction::Reverse;
    }

    /// Whether both sides of a TCP connection have agreed, and none has ended it.
    pub(super) fn is_established(&self) -> bool {
        let [forward, reverse] = self.flags;
        let agreed = flag::SYN | flag::ACK;
        forward & reverse & agreed == agreed && (forward | reverse) & (flag::FIN | flag::RST) == 0
    }

    /// Whether it may make room for others: it was never answered, or it is TCP that has
    /// ended, or whose beginner has not answered in turn. That a server answers is no sign
    /// of life: it does so to each SYN of a flood.
    pub(super) fn may_go(&self) -> bool {
        let [forward, reverse] = self.flags;
        let ended = (forward | reverse) & flag::RST != 0 || forward & reverse & flag::FIN != 0;
        // Without flags it is not TCP.
        let is_half_open = forward != 0 && forward & flag::ACK == 0;
        !self.answered || ended || is_half_open
    }

    /// How long it is kept from now on, in nanoseconds.
    pub(super) fn timeout(&self, proto: u8, timeouts: &Timeouts) -> u64 {
        let seconds = match proto {
            ip_proto::TCP if self.is_established() => timeouts.tcp_established,
            ip_proto::TCP => timeouts.tcp_transient,
            _ => timeouts.udp,
        };
        u64::from(seconds) * SECOND
    }
}
