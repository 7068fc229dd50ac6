//! How much a packet counts: the arguments that counters by aggregate share.

use castanet_engine::packet::anno;
use castanet_engine::prelude::*;

/// How much a packet counts.
#[derive(Clone, Copy, Args)]
pub(super) struct Amount {
    /// Whether to count bytes rather than packets.
    #[arg(keyword, default = false)]
    bytes: bool,
    /// Whether to leave out the bytes before the network header.
    #[arg(keyword, default = false)]
    ip_bytes: bool,
    /// Whether a packet counts for as many as its annotation says.
    #[arg(keyword, default = true)]
    multipacket: bool,
    /// Whether to count bytes that the packet had once, as its annotation says.
    #[arg(keyword, default = true)]
    extra_length: bool,
}

impl Amount {
    /// How much this packet counts.
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
