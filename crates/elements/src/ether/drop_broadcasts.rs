//! `DropBroadcasts`: drops link-level broadcasts and multicasts.

use castanet_element::prelude::*;

/// Drops packets that arrived as link-level broadcasts or multicasts.
///
/// The packet type annotation decides. A router must not forward such packets
/// (RFC 1812, 5.3.4). They leave by output 1, or are dropped if it is not
/// connected. Each worker reports the first of them.
///
/// ```click
/// in -> d :: DropBroadcasts -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > in  1.0.0.1 > 2.0.0.2 udp ; type broadcast
/// > in  1.0.0.1 > 2.0.0.2 udp ; type multicast
/// > in  1.0.0.1 > 2.0.0.2 udp ; type otherhost
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; type otherhost
/// ~ d :: DropBroadcasts: dropped a packet
/// = d.drops 2
/// = d.drops.group 2
/// ```
///
/// ```click
/// in -> d :: DropBroadcasts -> out;  d[1] -> broadcasts
/// > in  1.0.0.1 > 2.0.0.2 udp ; type broadcast
/// < broadcasts 1.0.0.1 > 2.0.0.2 udp ; type broadcast
/// = d.drops 1
/// ```
#[derive(Element)]
#[element(room = "ether")]
pub struct DropBroadcasts;

#[derive(Fate)]
pub enum DropBroadcastsExit {
    /// All other packets.
    One,
    /// Packets that arrived as link-level broadcasts or multicasts.
    #[optional]
    Group,
}

/// Counter of one worker.
#[derive(Default, Local)]
pub struct DropBroadcastsState {
    /// Number of link-level broadcasts and multicasts.
    #[read]
    #[portable]
    drops: u64,
    /// Whether the worker has reported the first of them.
    is_reported: bool,
}

impl PerPacket for DropBroadcasts {
    type On = on::Any;
    type Local = DropBroadcastsState;
    type Fate = DropBroadcastsExit;
    const CAN_PASS_BURST: bool = true;

    #[inline(always)]
    fn burst_effect(&self, burst: &BurstSummary) -> BurstEffect {
        match burst.may_be_to_group() {
            true => BurstEffect::Keeps,
            false => BurstEffect::Passes,
        }
    }

    #[inline]
    fn packet(&self, state: &mut DropBroadcastsState, packet: &mut Packet) -> DropBroadcastsExit {
        if packet.is_to_group() {
            state.drops += 1;
            return DropBroadcastsExit::Group;
        }
        DropBroadcastsExit::One
    }

    fn end_burst(&self, state: &mut DropBroadcastsState, cx: &mut Cx) {
        if state.drops > 0 && !std::mem::replace(&mut state.is_reported, true) {
            cx.report("dropped a packet");
        }
    }
}
