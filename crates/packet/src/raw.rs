//! Packets as words: how pools make them, and devices whose own code fills and empties batches.

use std::ptr::NonNull;

use crate::frame::FrameHeader;
use crate::packet::{Packet, PacketType, SHARED};

/// A packet as four words, for device code in another language, which finds
/// them in a [`Batch`](crate::Batch) one behind the other.
///
/// A descriptor that is written word by word can be moved on at once: a CPU
/// cannot forward several narrow stores to one wide load, and waits. What the
/// words hold is said for little-endian machines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub struct RawPacket {
    /// The frame's header; its bytes follow.
    pub frame: NonNull<FrameHeader>,
    /// Sixteen bits each, from the lowest on: where the bytes start, the
    /// link-layer, the network and the transport header; counted from the
    /// frame's header, 0 for none.
    pub offsets: u64,
    /// How many bytes, and above that 32 bits of destination annotation.
    pub span: u64,
    /// Eight bits each, from the lowest on: paint, flags, the pool's number,
    /// the packet type; above that sixteen each: device, and where the frame
    /// ends.
    pub marks: u64,
}

impl RawPacket {
    /// In the marks: that the frame has, or had, other owners.
    pub const SHARED: u64 = (SHARED as u64) << 8;
}

const _: () = assert!(size_of::<RawPacket>() == size_of::<Packet>());
const _: () = assert!(align_of::<RawPacket>() == align_of::<Packet>());

/// What new packets of a pool have in common: all words but the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blank {
    offsets: u64,
    span: u64,
    /// As [`RawPacket::marks`].
    pub(crate) marks: u64,
}

impl Blank {
    /// Empty packets at offset `data` of frames that end at offset `limit`.
    pub(crate) fn new(pool: u8, limit: usize, data: usize) -> Blank {
        let packet = Packet {
            frame: NonNull::dangling(),
            data: data as u16,
            mac: 0,
            network: 0,
            transport: 0,
            len: 0,
            dst: 0,
            paint: 0,
            flags: 0,
            pool,
            kind: PacketType::Host as u8,
            device: 0,
            limit: u16::try_from(limit).unwrap_or(u16::MAX),
        };
        // SAFETY: both are 32 plain bytes without padding. The packet, whose
        // frame is none, is not dropped.
        let RawPacket { offsets, span, marks, .. } =
            unsafe { std::mem::transmute::<Packet, RawPacket>(packet) };
        Blank { offsets, span, marks }
    }

    /// A packet of `len` bytes at offset `data` of `frame`, where its
    /// link-layer header is, as words.
    #[inline]
    pub(crate) fn received(self, frame: NonNull<FrameHeader>, data: u16, len: u32) -> RawPacket {
        let (data, len) = (u64::from(data), u64::from(len));
        // Network and transport header are not set, the destination is none.
        let (offsets, span) = match cfg!(target_endian = "little") {
            true => (data | data << 16, len),
            false => (data << 48 | data << 32, len << 32),
        };
        RawPacket { frame, offsets, span, marks: self.marks }
    }

    /// An empty packet in `frame`.
    ///
    /// # Safety
    /// `frame` must be a live frame of the blank's pool and end at its
    /// `limit` (or later, if that is `u16::MAX`); nobody else must own it.
    /// The blank's `data` must lie in the frame.
    #[inline]
    pub(crate) unsafe fn packet(self, frame: NonNull<FrameHeader>) -> Packet {
        let Blank { offsets, span, marks } = self;
        // SAFETY: both are 32 plain bytes without padding, and the words are
        // from a packet.
        unsafe {
            std::mem::transmute::<RawPacket, Packet>(RawPacket { frame, offsets, span, marks })
        }
    }
}
