//! Access to the aggregate annotation, for the elements that set it.

use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Sets the aggregate to `value`; with `appended_bits`, shifts the old value left by so many
/// bits and adds `value`.
pub(super) fn set(packet: &mut Packet, value: u32, appended_bits: Option<u32>) {
    let before = appended_bits
        .map_or(0, |bits| packet.anno_u32(anno::AGGREGATE).checked_shl(bits).unwrap_or(0));
    packet.set_anno_u32(anno::AGGREGATE, before.wrapping_add(value));
}
