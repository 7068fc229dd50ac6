//! The aggregate annotation, as those elements set it that compute it.

use castanet_engine::packet::anno;
use castanet_engine::prelude::*;

/// Sets the aggregate to `value`, or puts its `bits` behind what there is.
pub(super) fn set(packet: &mut Packet, value: u32, behind: Option<u32>) {
    let before =
        behind.map_or(0, |bits| packet.anno_u32(anno::AGGREGATE).checked_shl(bits).unwrap_or(0));
    packet.set_anno_u32(anno::AGGREGATE, before.wrapping_add(value));
}
