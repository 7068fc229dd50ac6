//! The last packet of an aggregate, with the totals of the aggregate.

use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// An aggregate: its last packet, number of packets and bytes, and time of its first packet.
pub(super) struct LastPacket {
    pub(super) packet: Packet,
    packets: u64,
    bytes: u64,
    first: i64,
}

/// The packets and bytes that a packet represents by its annotations.
fn size(packet: &Packet) -> (u64, u64) {
    let packets = 1 + u64::from(packet.anno_u16(anno::EXTRA_PACKETS));
    (packets, packet.len() as u64 + u64::from(packet.anno_u32(anno::EXTRA_LENGTH)))
}

impl LastPacket {
    /// A packet, with the totals of the packets before it added.
    pub(super) fn new(packet: Packet, before: Option<&LastPacket>) -> LastPacket {
        let (packets, bytes) = size(&packet);
        let first = match packet.anno_u64(anno::FIRST_TIMESTAMP) as i64 {
            0 => packet.timestamp(),
            first => first,
        };
        let before = before.map_or((0, 0, first), |it| (it.packets, it.bytes, it.first));
        LastPacket { packet, packets: packets + before.0, bytes: bytes + before.1, first: before.2 }
    }

    /// The packet, with the totals of the aggregate in its annotations.
    pub(super) fn into_packet(mut self) -> Packet {
        let packets = u16::try_from(self.packets - 1).unwrap_or(u16::MAX);
        let bytes = self.bytes.saturating_sub(self.packet.len() as u64);
        self.packet.set_anno_u16(anno::EXTRA_PACKETS, packets);
        self.packet.set_anno_u32(anno::EXTRA_LENGTH, u32::try_from(bytes).unwrap_or(u32::MAX));
        self.packet.set_anno_u64(anno::FIRST_TIMESTAMP, self.first as u64);
        self.packet
    }
}
