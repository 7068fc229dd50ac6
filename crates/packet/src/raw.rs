//! Packets as 64-bit words, for pools, and for device drivers that fill and empty batches.

use std::ptr::NonNull;

use crate::frame::FrameHeader;
use crate::packet::{COLD, FIX_IP_SRC_FLAG, IPV4_FLAGS, Packet, PacketType, SHARED, TYPE_MASK};

/// A packet as four words, for driver code in C, which accesses a
/// [`Batch`](crate::Batch) as an array of them.
///
/// A descriptor that was written word by word can be copied at once: a CPU
/// cannot forward several narrow stores to one wide load, and stalls. The
/// bit positions below are those of little-endian machines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub struct RawPacket {
    /// The frame's header; its bytes follow.
    pub frame: NonNull<FrameHeader>,
    /// Four offsets of 16 bits each, from the lowest on: contents, link-layer,
    /// network and transport header. They count from the start of the frame's
    /// header; 0 means none.
    pub offsets: u64,
    /// Length of the contents (32 bits), and above it the destination annotation.
    pub span: u64,
    /// Eight bits each, from the lowest on: paint, flags, pool number, packet
    /// type with the trace tag; above that 16 bits each: device, offset of the frame's end.
    pub marks: u64,
}

impl RawPacket {
    /// Bit of `marks`: the frame has, or had, other owners.
    pub const SHARED: u64 = (SHARED as u64) << 8;

    /// The bits of `marks` that belong to the frame: that of [`RawPacket::SHARED`], the pool's number
    /// and the offset of the frame's end.
    const FRAME_MARKS: u64 = u64::from_ne_bytes([0, SHARED, u8::MAX, 0, 0, 0, u8::MAX, u8::MAX]);

    /// The bits of `marks` that elements set on a packet's way through a graph: paint, flags of headers and
    /// annotations, packet type.
    const GRAPH_MARKS: u64 =
        u64::from_ne_bytes([u8::MAX, IPV4_FLAGS | FIX_IP_SRC_FLAG, 0, TYPE_MASK, 0, 0, 0, 0]);

    /// The words of a packet, which stays the owner.
    #[inline]
    pub(crate) fn of(packet: &Packet) -> RawPacket {
        // SAFETY: both types are 32 bytes of the same alignment, and any packet's words are valid.
        unsafe { std::ptr::from_ref(packet).cast::<RawPacket>().read() }
    }

    /// The words of this packet, moved to the frame of `other`.
    #[inline]
    pub(crate) fn in_frame_of(self, other: RawPacket) -> RawPacket {
        let marks = self.marks & !Self::FRAME_MARKS | other.marks & Self::FRAME_MARKS;
        RawPacket { frame: other.frame, marks, ..self }
    }

    /// The words of a packet of `len` bytes at offset `data` of the same frame, which starts with its
    /// link-layer header.
    #[inline]
    pub(crate) fn received(self, data: u16, len: u32) -> RawPacket {
        // Paint, flags, packet type (`PacketType::Host`) and device of new packets are 0.
        let marks = self.marks & Self::FRAME_MARKS;
        PacketTemplate { offsets: 0, span: 0, marks }.received(self.frame, data, len)
    }

    /// The packet that has these words, which must be those of a packet that stays alive.
    #[inline]
    pub(crate) fn as_packet(&self) -> &Packet {
        // SAFETY: both types are 32 bytes of the same alignment, and `&Packet` only allows reads.
        unsafe { &*std::ptr::from_ref(self).cast::<Packet>() }
    }

    /// Makes a packet of the words.
    ///
    /// # Safety
    /// The words must be those of a packet that no one else owns or drops.
    #[inline]
    pub(crate) unsafe fn into_packet(self) -> Packet {
        // SAFETY: both types are 32 bytes without padding; the caller vouches for the words.
        unsafe { std::mem::transmute::<RawPacket, Packet>(self) }
    }
}

impl Packet {
    /// Makes the packet one of type `kind` that a device has just received: the link-layer header begins at the first
    /// byte, and the other header offsets and all annotations are cleared. Timestamp, device, trace tag, and the checksums
    /// that the sender has to complete stay.
    #[inline]
    pub fn mark_received(&mut self, kind: PacketType) {
        if self.has(COLD) {
            self.clear_cold_annotations();
        }
        let RawPacket { frame, marks, .. } = RawPacket::of(self);
        let kind = u64::from_ne_bytes([0, 0, 0, kind as u8, 0, 0, 0, 0]);
        let marks = marks & !RawPacket::GRAPH_MARKS | kind;
        let words =
            PacketTemplate { offsets: 0, span: 0, marks }.received(frame, self.data, self.len);
        // SAFETY: the words are those of a valid packet of the same frame, and take the place of this one's, which
        // has nothing else to drop.
        unsafe { std::ptr::from_mut(self).cast::<RawPacket>().write(words) };
    }

    #[cold]
    fn clear_cold_annotations(&mut self) {
        self.clear_annotations();
    }
}

const _: () = assert!(size_of::<RawPacket>() == size_of::<Packet>());
const _: () = assert!(align_of::<RawPacket>() == align_of::<Packet>());

/// The words that all new packets of a pool have in common: all but the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketTemplate {
    offsets: u64,
    span: u64,
    /// As [`RawPacket::marks`].
    pub(crate) marks: u64,
}

impl PacketTemplate {
    /// The template of empty packets at offset `data` in frames that end at offset `limit`.
    pub(crate) fn new(pool: u8, limit: usize, data: usize) -> PacketTemplate {
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
        // SAFETY: both types are 32 bytes of integers and a pointer, without
        // padding. `transmute` consumes the packet, so that its destructor does
        // not run with the dangling frame.
        let RawPacket { offsets, span, marks, .. } =
            unsafe { std::mem::transmute::<Packet, RawPacket>(packet) };
        PacketTemplate { offsets, span, marks }
    }

    /// The words of a packet of `len` bytes at offset `data` of `frame`, which
    /// starts with its link-layer header.
    #[inline]
    pub(crate) fn received(self, frame: NonNull<FrameHeader>, data: u16, len: u32) -> RawPacket {
        let (data, len) = (u64::from(data), u64::from(len));
        // Network header, transport header and destination are not set.
        let (offsets, span) = match cfg!(target_endian = "little") {
            true => (data | data << 16, len),
            false => (data << 48 | data << 32, len << 32),
        };
        RawPacket { frame, offsets, span, marks: self.marks }
    }

    /// Makes an empty packet in `frame`.
    ///
    /// # Safety
    /// `frame` must be a live frame of the template's pool and end at its
    /// `limit` (or later, if that is `u16::MAX`), and have no other owner.
    /// The template's `data` must lie in the frame.
    #[inline]
    pub(crate) unsafe fn packet(self, frame: NonNull<FrameHeader>) -> Packet {
        let PacketTemplate { offsets, span, marks } = self;
        // SAFETY: the words are those of a valid packet: `new` took them from one, and
        // the caller vouches for the frame.
        unsafe { RawPacket { frame, offsets, span, marks }.into_packet() }
    }
}
