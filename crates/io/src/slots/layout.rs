//! The layout of the shared memory of a slot channel; `docs/slots.md` describes it for other programs.

use crate::sys::shared_slots::{RING_HEADER, RingMemory, SLOT_HEADER, SharedMemory};
use castanet_packet::{Packet, PacketType};
use std::sync::Arc;

/// The first bytes of the memory, and of the message that brings it.
pub(super) const MAGIC: [u8; 8] = *b"CASTSLOT";

/// The version of the layout and of the message.
pub(super) const VERSION: u32 = 1;

/// Bytes of the memory before the first ring.
const MEMORY_HEADER: usize = 4096;

/// The numbers of slots that a ring may have.
pub(crate) const SLOTS: std::ops::RangeInclusive<u32> = 2..=32768;

/// The longest packets that a channel may be made for.
pub(crate) const CAPACITY: std::ops::RangeInclusive<u32> = 64..=65536;

/// The most bytes of memory that a channel has.
pub(crate) const MAX_BYTES: usize = 256 << 20;

/// The size of the rings of a channel; both rings have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    /// Number of slots of a ring, a power of two.
    pub(crate) slots: u32,
    /// Bytes from slot to slot, a multiple of 64.
    pub(crate) stride: u32,
}

impl Geometry {
    /// Rings of at least `slots` slots for packets of up to `capacity` bytes. The stride is an odd
    /// number of cache lines, so that slots do not compete for the same sets of a cache.
    pub(crate) fn new(slots: u32, capacity: u32) -> Geometry {
        let lines = (capacity + SLOT_HEADER as u32).div_ceil(64);
        Geometry { slots: slots.next_power_of_two(), stride: (lines | 1) * 64 }
    }

    /// Reads what a peer says of its memory; `None` if it is no layout of this version.
    pub(super) fn parse(header: &[u8; HEADER_LEN]) -> Option<Geometry> {
        let word = |at: usize| header.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let it = Geometry { slots: word(16)?, stride: word(20)? };
        let capacity = it.stride.checked_sub(SLOT_HEADER as u32)?;
        let formed = header.starts_with(&MAGIC)
            && word(8)? == VERSION
            && word(12)? as usize == MEMORY_HEADER
            && SLOTS.contains(&it.slots)
            && it.slots.is_power_of_two()
            && it.stride.is_multiple_of(64)
            && capacity <= *CAPACITY.end() + 128
            && it.bytes() <= MAX_BYTES;
        formed.then_some(it)
    }

    /// The header of memory with such rings.
    pub(super) fn header(self) -> [u8; HEADER_LEN] {
        let mut header = [0; HEADER_LEN];
        header[..8].copy_from_slice(&MAGIC);
        let words = [VERSION, MEMORY_HEADER as u32, self.slots, self.stride];
        for (to, word) in header[8..].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        header
    }

    fn ring_bytes(self) -> usize {
        let bytes = RING_HEADER + self.slots as usize * self.stride as usize;
        bytes.next_multiple_of(MEMORY_HEADER)
    }

    /// Bytes of the memory.
    pub(crate) fn bytes(self) -> usize {
        MEMORY_HEADER + 2 * self.ring_bytes()
    }

    /// Bytes of a packet for which a slot has room.
    pub(super) fn capacity(self) -> usize {
        self.stride as usize - SLOT_HEADER
    }

    /// The two rings: packets of the process that made the memory, and packets of its peer.
    pub(super) fn rings(self, memory: &Arc<SharedMemory>) -> Option<[RingMemory; 2]> {
        let ring = |offset| RingMemory::new(memory, offset, self.slots, self.stride as usize);
        Some([ring(MEMORY_HEADER)?, ring(MEMORY_HEADER + self.ring_bytes())?])
    }
}

/// Bytes of the header that are in use.
pub(super) const HEADER_LEN: usize = 24;

/// The contents of a slot's descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlotDescriptor {
    /// Length of the packet in bytes.
    pub(crate) len: u32,
    /// Its paint annotation.
    pub(crate) paint: u8,
    /// Its packet type, as the number that `PacketType` has.
    pub(crate) kind: u8,
    /// Its time stamp in nanoseconds since 1970 UTC; 0 for none.
    pub(crate) timestamp: i64,
}

impl SlotDescriptor {
    /// The descriptor of a packet.
    #[inline]
    pub(super) fn of(packet: &Packet) -> SlotDescriptor {
        SlotDescriptor {
            len: packet.len() as u32,
            paint: packet.paint(),
            kind: packet.packet_type() as u8,
            timestamp: packet.timestamp(),
        }
    }

    /// Reads the words of a slot; any words make a descriptor.
    #[inline]
    pub(super) fn from_words(words: [u64; 2]) -> SlotDescriptor {
        let [len, flags] = [words[0] as u32, (words[0] >> 32) as u32];
        let [paint, kind, ..] = flags.to_le_bytes();
        SlotDescriptor { len, paint, kind, timestamp: words[1] as i64 }
    }

    /// The words of a slot.
    #[inline]
    pub(super) fn words(self) -> [u64; 2] {
        let flags = u32::from_le_bytes([self.paint, self.kind, 0, 0]);
        [u64::from(self.len) | u64::from(flags) << 32, self.timestamp as u64]
    }

    /// Whether its packet type is none.
    #[inline]
    pub(super) fn has_unknown_kind(self) -> bool {
        PacketType::from_number(self.kind).is_none()
    }

    /// Annotates a packet of this descriptor.
    #[inline]
    pub(super) fn annotate(self, packet: &mut Packet) {
        packet.set_paint(self.paint);
        if let Some(kind) = PacketType::from_number(self.kind) {
            packet.set_packet_type(kind);
        }
        // The time stamp lies in the frame's cold header: skipping it saves the access.
        if self.timestamp != 0 {
            packet.set_timestamp(self.timestamp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_as_documented_and_others_are_refused() {
        let geometry = Geometry::new(1000, 2048);
        assert_eq!(geometry, Geometry { slots: 1024, stride: 2112 });
        let header = geometry.header();
        assert_eq!(header[..12], *b"CASTSLOT\x01\0\0\0");
        assert_eq!(header[12..24], [0, 16, 0, 0, 0, 4, 0, 0, 0x40, 8, 0, 0]);
        assert_eq!(Geometry::parse(&header), Some(geometry));
        for at in 0..HEADER_LEN {
            for bit in 0..8 {
                let mut other = header;
                other[at] ^= 1 << bit;
                // Other sizes may be well formed; they are never larger than the limits.
                let parsed = Geometry::parse(&other);
                assert!(parsed.is_none_or(|it| it != geometry && it.bytes() <= MAX_BYTES));
                assert!(parsed.is_none() || at >= 16);
            }
        }
    }

    #[test]
    fn descriptors_have_documented_bytes() {
        let it = SlotDescriptor { len: 0x0102, paint: 7, kind: 3, timestamp: -2 };
        let [first, second] = it.words().map(u64::to_le_bytes);
        assert_eq!(first, [2, 1, 0, 0, 7, 3, 0, 0]);
        assert_eq!(second, (-2i64).to_le_bytes());
        assert_eq!(SlotDescriptor::from_words(it.words()), it);
    }
}
