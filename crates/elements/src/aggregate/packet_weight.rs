//! The weight of a packet in counters by aggregate: packets or bytes.

use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// The arguments that select the weight of a packet.
#[derive(Clone, Copy, Args)]
pub(super) struct PacketWeightArgs {
    /// Whether to count bytes rather than packets.
    #[arg(keyword, default = false)]
    bytes: bool,
    /// Whether to leave out the bytes before the network header.
    #[arg(keyword, default = false)]
    ip_bytes: bool,
    /// Whether to add the packets in the extra packets annotation.
    #[arg(keyword, default = true)]
    multipacket: bool,
    /// Whether to add the bytes in the extra length annotation.
    #[arg(keyword, default = true)]
    extra_length: bool,
}

impl PacketWeightArgs {
    /// The weight of a packet: 1 and extra packets, or bytes and extra bytes.
    #[inline]
    pub(super) fn of(&self, packet: &Packet) -> u64 {
        if !self.bytes {
            let more = if self.multipacket { packet.anno_u16(anno::EXTRA_PACKETS) } else { 0 };
            return 1 + u64::from(more);
        }
        let more = if self.extra_length { packet.anno_u32(anno::EXTRA_LENGTH) } else { 0 };
        let head = match self.ip_bytes {
            true => packet.network_offset().and_then(|at| usize::try_from(at).ok()).unwrap_or(0),
            false => 0,
        };
        packet.len() as u64 + u64::from(more) - head.min(packet.len()) as u64
    }
}
