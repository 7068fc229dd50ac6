//! The packet descriptor: 32 bytes, owned, held by value.
//!
//! What every element needs travels in the descriptor: where the bytes are,
//! where the headers are, destination annotation, paint. What few need lies
//! in the frame's header, a cache line of its own ([`crate::FrameHeader`]).
//! The bytes are found by an offset from the frame, not by a pointer: the six
//! bytes saved pay for the pool's number, so that freeing a packet touches no
//! memory of its frame.
//!
//! Invariants that all `unsafe` code in this crate leans on, kept by the
//! functions of this module, `contents` and `headers`:
//! 1. `frame` is live for as long as the packet; it is ours alone unless
//!    `SHARED` is set, and while it is shared nobody writes to it.
//! 2. `HEADER <= data` and `data + len <=` the frame's end.
//! 3. A header offset is 0 or at least `HEADER`. It may lie beyond the end
//!    of the packet; users check.
//! 4. If `IPV4` is set, 20 bytes from `network` on lie before `data + len`.
//! 5. If `COLD` is not set, timestamp and annotations read as zeros,
//!    whatever the frame's header says.

use std::fmt;
use std::net::Ipv4Addr;
use std::ptr::NonNull;

use crate::anno;
use crate::frame::{self, DEFAULT_HEADROOM, FrameHeader, HEADER, HEAP};
use crate::pool;
use crate::raw::Blank;

/// The frame has, or had, other owners.
pub(crate) const SHARED: u8 = 1;
/// An IPv4 header at `network` was seen to lie within the packet.
pub(crate) const IPV4: u8 = 2;
/// The `FIX_IP_SRC` annotation.
pub(crate) const FIX_IP_SRC_FLAG: u8 = 4;
/// Timestamp and annotations in the frame's header are valid.
pub(crate) const COLD: u8 = 8;
/// The IPv4 header's checksum is left to who sends the packet.
pub(crate) const PARTIAL_IP: u8 = 16;
/// So is that of TCP or UDP behind it.
pub(crate) const PARTIAL_TRANSPORT: u8 = 32;

/// Length of an IPv4 header without options.
pub(crate) const IPV4_LEN: usize = size_of::<castanet_wire::Ipv4Header>();

/// An owned packet: bytes in a frame, and what is known about them.
///
/// A packet cannot be cloned by accident; [`Packet::share`] makes a second
/// packet of the same bytes on purpose, and whoever writes first then copies.
/// Sharing counts owners atomically, only for packets that are shared at all.
/// (Counting by plain arithmetic where one worker owns a packet for its whole
/// life needs the graph's thread vectors; it comes with them.)
/// Dropping a packet returns its frame to its pool.
///
/// Aligned to its size, so that no descriptor straddles two cache lines: views
/// and `partition` are 15 to 40 % faster for it.
#[repr(C, align(32))]
pub struct Packet {
    pub(crate) frame: NonNull<FrameHeader>,
    pub(crate) data: u16,
    pub(crate) mac: u16,
    pub(crate) network: u16,
    pub(crate) transport: u16,
    pub(crate) len: u32,
    /// Network order: the octets as they lie in memory.
    pub(crate) dst: u32,
    pub(crate) paint: u8,
    pub(crate) flags: u8,
    pub(crate) pool: u8,
    /// A [`PacketType`], as a number: `Option<Packet>` is to find its niche
    /// in the pointer, where testing for it is cheapest.
    pub(crate) kind: u8,
    pub(crate) device: u16,
    /// Where the frame ends, or `u16::MAX` if further than that.
    pub(crate) limit: u16,
}

const _: () = assert!(size_of::<Packet>() == 32 && size_of::<Option<Packet>>() == 32);

// SAFETY: the frame is ours alone, or shared read-only with an atomic count
// of owners; pools accept frames from any thread.
unsafe impl Send for Packet {}
// SAFETY: `&Packet` only reads, and `&mut Packet` is needed to share or write.
unsafe impl Sync for Packet {}

/// Whom the link layer meant a packet for, numbered as in Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketType {
    /// This host.
    #[default]
    Host = 0,
    /// Everyone on the link.
    Broadcast = 1,
    /// A group.
    Multicast = 2,
    /// Another host, overheard.
    OtherHost = 3,
    /// Sent by this host.
    Outgoing = 4,
}

/// Checksums that are left to who sends a packet, as its headers say where they
/// are: an IPv4 header's is zero until then, that of TCP or UDP the sum of the
/// pseudo header.
///
/// Only packets on their way to a port that can complete them are marked so,
/// past elements that do not look: see `Setup::may_leave_sums` in the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    /// The IPv4 header's.
    pub ip: bool,
    /// That of TCP or UDP.
    pub transport: bool,
}

impl Packet {
    /// A packet of these bytes, in a frame of the general allocator, after
    /// [`DEFAULT_HEADROOM`] bytes of headroom. For tests and where no pool is
    /// at hand.
    pub fn from_bytes(bytes: &[u8]) -> Packet {
        let mut packet = Packet::heap(DEFAULT_HEADROOM + bytes.len() + DEFAULT_HEADROOM);
        packet.fill(HEADER + DEFAULT_HEADROOM, bytes);
        packet
    }

    /// An empty packet in a heap frame of `capacity` bytes.
    pub(crate) fn heap(capacity: usize) -> Packet {
        let frame = pool::heap::take(capacity);
        // SAFETY: a new heap frame with room for nothing at its start.
        unsafe { Blank::new(HEAP, HEADER + capacity, HEADER).packet(frame) }
    }

    /// How many bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no bytes at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: invariants 1 and 2; frames are initialised.
        unsafe { std::slice::from_raw_parts(self.at(self.data.into()), self.len()) }
    }

    /// The bytes, to change; copies first if they are shared, and forgets
    /// that the packet was seen to be IPv4.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.own();
        self.flags &= !IPV4;
        // SAFETY: invariants 1 and 2, and the frame is ours alone.
        unsafe { std::slice::from_raw_parts_mut(self.at(self.data.into()), self.len()) }
    }

    /// Bytes free before the contents.
    #[inline]
    pub fn headroom(&self) -> usize {
        usize::from(self.data) - HEADER
    }

    /// Bytes free after the contents.
    #[inline]
    pub fn tailroom(&self) -> usize {
        self.limit() - self.end()
    }

    /// A second packet of the same bytes, with the same annotations. Both
    /// copy before they write, until one of them is left.
    pub fn share(&mut self) -> Packet {
        // SAFETY: we own the frame; alone, unless it is marked as shared.
        let shared = unsafe {
            if self.has(SHARED) {
                FrameHeader::add_owner(self.frame)
            } else {
                FrameHeader::begin_sharing(self.frame);
                true
            }
        };
        if !shared {
            return self.copy();
        }
        self.flags |= SHARED;
        // SAFETY: the second owner was counted.
        unsafe { std::ptr::read(self) }
    }

    /// A packet with a copy of the bytes, in a frame of its own.
    pub fn copy(&self) -> Packet {
        // SAFETY: this duplicate is only used to copy from, as a shared
        // packet is, and gives its claim to the frame up below.
        let mut copy = std::mem::ManuallyDrop::new(unsafe { std::ptr::read(self) });
        copy.relocate_from(self.data.into(), 0, self.tailroom());
        std::mem::ManuallyDrop::into_inner(copy)
    }

    /// The number of the pool that the frame belongs to, as
    /// [`Pool::id`](crate::Pool::id); 255 for the heap.
    #[inline]
    pub fn pool_id(&self) -> u8 {
        self.pool
    }

    /// Where the frame is, for a device that sends from it: the bytes start
    /// [`Packet::headroom`] after its header.
    #[inline]
    pub fn frame(&self) -> NonNull<FrameHeader> {
        self.frame
    }

    /// Gives the frame out, for a device to fill or send; copies first if it
    /// is shared. Annotations are forgotten. The frame counts as in use until
    /// [`Pool::adopt`](crate::Pool::adopt) makes a packet of it again; if
    /// nobody does, it is lost.
    #[inline]
    pub fn into_frame(mut self) -> NonNull<FrameHeader> {
        self.own();
        let frame = self.frame;
        std::mem::forget(self);
        frame
    }

    /// Whether the bytes may have other owners, so that a write copies.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.has(SHARED)
    }

    /// The paint annotation.
    #[inline]
    pub fn paint(&self) -> u8 {
        self.paint
    }

    /// Sets the paint annotation.
    #[inline]
    pub fn set_paint(&mut self, paint: u8) {
        self.paint = paint;
    }

    /// The destination annotation: where the packet goes next.
    #[inline]
    pub fn dst(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.dst.to_ne_bytes())
    }

    /// Sets the destination annotation.
    #[inline]
    pub fn set_dst(&mut self, dst: Ipv4Addr) {
        self.dst = u32::from_ne_bytes(dst.octets());
    }

    /// Whether `FixIPSrc` is to put this router's address in.
    #[inline]
    pub fn fix_ip_src(&self) -> bool {
        self.has(FIX_IP_SRC_FLAG)
    }

    /// Sets the `FIX_IP_SRC` annotation.
    #[inline]
    pub fn set_fix_ip_src(&mut self, fix: bool) {
        self.flags = self.flags & !FIX_IP_SRC_FLAG | if fix { FIX_IP_SRC_FLAG } else { 0 };
    }

    /// Which checksums are left to who sends the packet.
    #[inline]
    pub fn partial(&self) -> Partial {
        Partial { ip: self.has(PARTIAL_IP), transport: self.has(PARTIAL_TRANSPORT) }
    }

    /// Says which checksums are left to who sends the packet.
    #[inline]
    pub fn set_partial(&mut self, partial: Partial) {
        let ip = if partial.ip { PARTIAL_IP } else { 0 };
        let transport = if partial.transport { PARTIAL_TRANSPORT } else { 0 };
        self.flags = self.flags & !(PARTIAL_IP | PARTIAL_TRANSPORT) | ip | transport;
    }

    /// Whom the link layer meant the packet for.
    #[inline]
    pub fn packet_type(&self) -> PacketType {
        match self.kind {
            1 => PacketType::Broadcast,
            2 => PacketType::Multicast,
            3 => PacketType::OtherHost,
            4 => PacketType::Outgoing,
            _ => PacketType::Host,
        }
    }

    /// Sets whom the link layer meant the packet for.
    #[inline]
    pub fn set_packet_type(&mut self, kind: PacketType) {
        self.kind = kind as u8;
    }

    /// The device annotation: a number that devices give themselves.
    #[inline]
    pub fn device(&self) -> u16 {
        self.device
    }

    /// Sets the device annotation.
    #[inline]
    pub fn set_device(&mut self, device: u16) {
        self.device = device;
    }

    /// When the packet was received, in nanoseconds since 1970; 0 if nobody said.
    #[inline]
    pub fn timestamp(&self) -> i64 {
        if !self.has(COLD) {
            return 0;
        }
        // SAFETY: the frame is live and nobody writes to shared headers.
        unsafe { (&raw const (*self.frame.as_ptr()).timestamp).read() }
    }

    /// Sets when the packet was received.
    #[inline]
    pub fn set_timestamp(&mut self, nanoseconds: i64) {
        self.own_cold();
        // SAFETY: the frame is ours alone.
        unsafe { (&raw mut (*self.frame.as_ptr()).timestamp).write(nanoseconds) }
    }

    /// Takes over all annotations of `other`: also time, packet type and device.
    pub fn annotate_like(&mut self, other: &Packet) {
        self.set_annotations(other.annotations());
        if self.timestamp() != other.timestamp() {
            self.set_timestamp(other.timestamp());
        }
        (self.kind, self.device) = (other.kind, other.device);
    }

    /// Whether any of `flags` is set.
    #[inline]
    pub(crate) fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Whether the frame is ours alone and one of `pool`; a single comparison.
    #[inline]
    pub(crate) fn is_alone_in(&self, pool: u8) -> bool {
        let marks = u16::from_ne_bytes([self.flags & SHARED, self.pool]);
        marks == u16::from_ne_bytes([0, pool])
    }

    /// Offset of the first byte past the contents.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        usize::from(self.data) + self.len()
    }

    /// Where `offset` lies; at most the end of the frame may be asked for.
    #[inline]
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= self.limit());
        // SAFETY: in the frame, as all callers see to.
        unsafe { frame::at(self.frame, offset) }
    }

    /// The cold annotations; valid only if `COLD` is set.
    #[inline]
    pub(crate) fn cold_annotations(&self) -> *mut u8 {
        // SAFETY: only the address is computed, inside the frame's header.
        unsafe { (&raw mut (*self.frame.as_ptr()).annotations).cast() }
    }

    /// Sees to it that the frame is ours alone.
    #[inline]
    pub(crate) fn own(&mut self) {
        if self.has(SHARED) {
            self.unshare();
        }
    }

    /// Sees to it that the frame is ours alone and its header valid.
    #[inline]
    pub(crate) fn own_cold(&mut self) {
        self.own();
        if !self.has(COLD) {
            self.flags |= COLD;
            // SAFETY: the frame is ours alone.
            unsafe {
                (&raw mut (*self.frame.as_ptr()).timestamp).write(0);
                self.cold_annotations().write_bytes(0, anno::SIZE);
            }
        }
    }

    /// Becomes the only owner of a frame: of this one if the others have
    /// gone, else of a copy.
    #[cold]
    #[inline(never)]
    fn unshare(&mut self) {
        // SAFETY: we are one of the owners.
        if unsafe { FrameHeader::is_alone(self.frame) } {
            self.flags &= !SHARED;
        } else {
            self.relocate(self.data.into(), 0, self.tailroom());
        }
    }

    /// Where the frame ends.
    #[inline]
    pub(crate) fn limit(&self) -> usize {
        if self.limit < u16::MAX {
            return self.limit.into();
        }
        // SAFETY: invariant 1.
        HEADER + unsafe { FrameHeader::capacity(self.frame) }
    }
}

/// For tests: what a packet is, briefly.
impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet")
            .field("len", &self.len)
            .field("mac", &self.mac_offset())
            .field("network", &self.network_offset())
            .field("transport", &self.transport_offset())
            .field("paint", &self.paint)
            .field("dst", &self.dst())
            .field("shared", &self.is_shared())
            .finish_non_exhaustive()
    }
}

impl Drop for Packet {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: we own the frame and never use it again.
        unsafe {
            if !self.has(SHARED) || FrameHeader::remove_owner(self.frame) {
                pool::recycle(self.frame, self.pool);
            }
        }
    }
}
