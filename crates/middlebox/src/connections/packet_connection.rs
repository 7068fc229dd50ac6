//! The connection of a packet, as a lookup finds it.

use super::entry::{ConnectionState, ConntrackEntry};
use super::mapping::Direction;
use super::tuple::QuotedOffset;
use crate::headers::Headers;
use crate::rule_set::Timeouts;
use castanet_kit::conntrack::{Address, ExclusiveAccess, Flow, Id, Slot, TupleKey};

/// A connection of one family.
type FamilyFlow<'c, A> = Flow<'c, ConntrackEntry<TupleKey<A>>>;

/// Result of a lookup: the entry, the key by which it was found, and the order of the ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) id: Id,
    pub(super) is_second: bool,
    pub(super) swapped: bool,
    pub(super) is_ip6: bool,
}

impl Hit {
    /// The hit of a lookup by a key whose ends are swapped or not; `None` if nothing was found.
    #[inline]
    pub(super) fn new(slot: Slot, swapped: bool, is_ip6: bool) -> Option<Hit> {
        let (id, is_second) = slot.entry()?;
        Some(Hit { id, is_second, swapped, is_ip6 })
    }

    /// The end of the connection, and the direction of the packet.
    #[inline]
    pub(super) fn deadline_and_direction<A: Address>(
        self,
        flow: FamilyFlow<A>,
    ) -> (u64, Direction) {
        (flow.deadline(), flow.data().state().direction(self.is_second, self.swapped))
    }
}

/// The connection of a packet and its direction. It stays at 16 bytes because it is passed by
/// value: a larger one goes through memory and stalls on store forwarding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketConnection {
    pub(super) hit: Hit,
    pub(super) quoted: QuotedOffset,
    /// Direction of the packet.
    pub(crate) direction: Direction,
}

const _: () = assert!(size_of::<Option<PacketConnection>>() == 16);

/// Result of a lookup under shared access.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LookupResult {
    /// The packet belongs to this connection.
    Connection(PacketConnection),
    /// The packet belongs to no connection.
    None,
    /// The answer needs exclusive access.
    NeedsWrite,
}

const _: () = assert!(size_of::<LookupResult>() == 16);

impl PacketConnection {
    /// Records a packet; returns the end of its connection, which an ICMP error does not extend.
    #[inline]
    pub(super) fn record(
        &self,
        state: &ConnectionState,
        (bytes, headers): (&[u8], &Headers),
        timeouts: &Timeouts,
        now: u64,
    ) -> Option<u64> {
        if self.quoted.is_some() {
            return None;
        }
        let (proto, flags) = (headers.protocol, headers.tcp_flags(bytes));
        Some(now + state.record(self.direction, proto, flags, timeouts))
    }

    /// The same under shared access, which extends the timeout.
    #[inline]
    pub(super) fn refresh<A: Address>(
        &self,
        flow: FamilyFlow<A>,
        seen: (&[u8], &Headers),
        timeouts: &Timeouts,
        now: u64,
    ) -> Result<(), ExclusiveAccess> {
        let until = self.record(flow.data().state(), seen, timeouts, now);
        until.map_or(Ok(()), |until| flow.postpone(until))
    }

    /// Whether the packet, or the one that it quotes, has the tuple that is translated.
    #[inline]
    pub(super) fn is_rewritten(&self) -> bool {
        self.hit.is_second == (self.direction == Direction::Reply)
    }
}
