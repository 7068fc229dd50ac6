//! The entry of one connection.

use super::mapping::Direction;
use super::packet_connection::Hit;
use super::rule_refs::RuleRefs;
use crate::rule_set::Timeouts;
use castanet_kit::conntrack::{Address, Entry, Table, Tuple, TupleKey};
use castanet_wire::ip_proto;
use castanet_wire::tcp::flag;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

const SECOND: u64 = 1_000_000_000;

/// The entry of a connection. Its first key is the original tuple; a translated connection also has
/// the key of the translated tuple.
#[derive(Default, Debug)]
pub(crate) struct ConntrackEntry<K> {
    /// Key of the translated tuple; all zeros without translation.
    second: K,
    state: ConnectionState,
}

/// The state of a connection of either family. Workers with shared access update the atomic fields,
/// and store only if the value changes.
#[derive(Default, Debug)]
pub(crate) struct ConnectionState {
    /// The rules of the connection.
    pub(super) rule_refs: RuleRefs,
    /// Index of its offsets in [`SeqOffsets`](super::seq_offsets::SeqOffsets), if it has any.
    pub(super) offsets: Option<NonZeroU32>,
    /// TCP flags seen in the original and in the reply direction.
    flags: [AtomicU8; 2],
    /// [`SWAPPED`], [`HAS_REPLY`] and [`HAS_SECOND`].
    bits: AtomicU8,
}

/// For both keys: whether packets of the original direction come from the greater end.
const SWAPPED: [u8; 2] = [1, 2];
/// Whether a reply has been seen.
const HAS_REPLY: u8 = 4;
/// Whether the entry has a second key.
const HAS_SECOND: u8 = 8;

impl<A: Address> Entry for ConntrackEntry<TupleKey<A>> {
    type Key = TupleKey<A>;
    #[inline]
    fn second_key(&self) -> Option<&TupleKey<A>> {
        self.state.has(HAS_SECOND).then_some(&self.second)
    }
}

impl<A: Address> ConntrackEntry<TupleKey<A>> {
    /// Adds the connection of an original and a translated tuple to a table; `None` if there is no
    /// room.
    pub(super) fn insert(
        table: &mut Table<Self>,
        (from, to): (&Tuple, &Tuple),
        state: ConnectionState,
        until: u64,
        now: u64,
    ) -> Option<Hit> {
        let (first, swapped) = TupleKey::of_tuple(from).ordered();
        let (second, mapped) = TupleKey::of_tuple(to).ordered();
        let has_second = from != to && second != first;
        let bits = [(swapped, SWAPPED[0]), (mapped, SWAPPED[1]), (has_second, HAS_SECOND)];
        let bits = bits.map(|(is_set, bit)| if is_set { bit } else { 0 });
        state.bits.fetch_or(bits[0] | bits[1] | bits[2], Relaxed);
        let id = table.insert(first, ConntrackEntry { second, state }, until, now).ok()?;
        Some(Hit { id, is_second: false, swapped, is_ip6: from.is_ip6() })
    }

    #[inline]
    pub(super) fn state(&self) -> &ConnectionState {
        &self.state
    }

    pub(super) fn state_mut(&mut self) -> &mut ConnectionState {
        &mut self.state
    }

    /// Returns the original tuple and the translated one, both in the original direction.
    #[inline]
    pub(super) fn tuples(&self, first: &TupleKey<A>) -> (TupleKey<A>, TupleKey<A>) {
        let turn = |key: TupleKey<A>, is_second: bool| match self.state.is_swapped(is_second) {
            true => key.reversed(),
            false => key,
        };
        let from = turn(*first, false);
        (from, self.second_key().map_or(from, |second| turn(*second, true)))
    }
}

impl ConnectionState {
    /// The state of a connection without packets.
    pub(super) fn new(rule_refs: RuleRefs, offsets: Option<NonZeroU32>) -> ConnectionState {
        ConnectionState { rule_refs, offsets, ..ConnectionState::default() }
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

    /// Whether a reply has been seen.
    pub(super) fn has_reply(&self) -> bool {
        self.has(HAS_REPLY)
    }

    /// Sets what was seen of a connection that comes from another instance.
    pub(super) fn set_seen(&self, flags: [u8; 2], has_reply: bool) {
        self.flags.iter().zip(flags).for_each(|(place, flags)| place.store(flags, Relaxed));
        self.bits.fetch_or(if has_reply { HAS_REPLY } else { 0 }, Relaxed);
    }

    #[inline]
    fn is_swapped(&self, is_second: bool) -> bool {
        self.has(SWAPPED[usize::from(is_second)])
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

    /// Whether packets of the connection are rewritten.
    #[inline]
    pub(super) fn is_translated(&self) -> bool {
        self.has(HAS_SECOND) || self.offsets.is_some()
    }

    /// Records a packet and returns the timeout from now on, in nanoseconds.
    #[inline]
    pub(super) fn record(
        &self,
        direction: Direction,
        proto: u8,
        tcp_flags: u8,
        timeouts: &Timeouts,
    ) -> u64 {
        let add = |place: &AtomicU8, bits: u8| {
            if place.load(Relaxed) & bits != bits {
                place.fetch_or(bits, Relaxed);
            }
        };
        add(&self.flags[direction as usize], tcp_flags);
        add(&self.bits, if direction == Direction::Reply { HAS_REPLY } else { 0 });
        let seconds = match proto {
            ip_proto::TCP if self.is_established() => timeouts.tcp_established,
            ip_proto::TCP => timeouts.tcp_transient,
            _ => timeouts.udp,
        };
        u64::from(seconds) * SECOND
    }

    /// Whether both sides of a TCP connection have sent SYN and ACK, and neither FIN nor RST.
    #[inline]
    pub(super) fn is_established(&self) -> bool {
        let [forward, reverse] = self.flags();
        let agreed = flag::SYN | flag::ACK;
        forward & reverse & agreed == agreed && (forward | reverse) & (flag::FIN | flag::RST) == 0
    }

    /// Whether TCP has ended: a side has reset the connection, or both have closed it.
    pub(super) fn is_over(&self) -> bool {
        let [forward, reverse] = self.flags();
        (forward | reverse) & flag::RST != 0 || forward & reverse & flag::FIN != 0
    }

    /// Whether the entry may be evicted: no reply has been seen, or TCP has ended, or the initiator
    /// has not acknowledged the SYN-ACK. A reply of the server alone proves nothing: it answers
    /// each SYN of a flood.
    pub(super) fn is_evictable(&self) -> bool {
        let [forward, _] = self.flags();
        // An entry without flags is not TCP.
        let is_half_open = forward != 0 && forward & flag::ACK == 0;
        !self.has(HAS_REPLY) || self.is_over() || is_half_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_kit::conntrack::Tuple4;

    #[test]
    fn an_ipv4_entry_with_key_and_slot_fits_a_cache_line() {
        assert_eq!(Table::<ConntrackEntry<Tuple4>>::ENTRY_LEN, 64);
    }
}
