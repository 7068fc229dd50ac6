//! The packet descriptor: 32 bytes, the owner of a frame, passed by value.
//!
//! The descriptor has the fields that every element needs: offsets of the bytes
//! and of the headers, destination annotation, paint. The rarely used fields lie
//! in the frame's header, a cache line of its own ([`crate::FrameHeader`]).
//! The descriptor has an offset of the bytes in the frame instead of a pointer:
//! the six bytes saved pay for the pool's number, so that freeing a packet does
//! not touch the memory of its frame.
//!
//! All `unsafe` code in this crate relies on these invariants, which the
//! functions of this module, `contents` and `headers` keep:
//! 1. `frame` is live for as long as the packet. Without the flag `SHARED` the
//!    packet is its only owner; while a frame has several owners, none of them
//!    writes to it.
//! 2. `HEADER <= data` and `data + len <=` the frame's end.
//! 3. A header offset is 0 or at least `HEADER`. It may lie beyond the end
//!    of the packet; its users check that.
//! 4. If `IPV4` is set, 20 bytes from `network` on lie before `data + len`.
//! 5. With `NO_OPTIONS`, the header had no options when `IPV4` was set with it. Code that
//!    changes the length of a marked header clears both; the memory does not depend on it.
//! 6. Without the flag `COLD`, timestamp and annotations read as zeros,
//!    whatever the frame's header contains.

use std::fmt;
use std::net::Ipv4Addr;
use std::ptr::NonNull;

use crate::anno;
use crate::frame::{self, DEFAULT_HEADROOM, FrameHeader, HEADER, HEAP};
use crate::pool;
use crate::raw::PacketTemplate;

/// The frame has, or had, other owners.
pub(crate) const SHARED: u8 = 1;
/// The packet has been checked to contain an IPv4 header at `network`.
pub(crate) const IPV4: u8 = 2;
/// The `FIX_IP_SRC` annotation.
pub(crate) const FIX_IP_SRC_FLAG: u8 = 4;
/// Timestamp and annotations in the frame's header are valid.
pub(crate) const COLD: u8 = 8;
/// The sender of the packet has to complete the IPv4 header's checksum.
pub(crate) const PARTIAL_IP: u8 = 16;
/// The sender of the packet has to complete the checksum of TCP or UDP.
pub(crate) const PARTIAL_TRANSPORT: u8 = 32;
/// With `IPV4`: when the header was marked, it had no options.
pub(crate) const NO_OPTIONS: u8 = 64;
/// The flags of an IPv4 header that has been checked.
pub(crate) const IPV4_FLAGS: u8 = IPV4 | NO_OPTIONS;

/// Bits of `kind` that are the packet type; those above are the trace tag.
const TYPE_BITS: u32 = 3;
/// Mask of the packet type.
pub(crate) const TYPE_MASK: u8 = (1 << TYPE_BITS) - 1;

/// Length of an IPv4 header without options.
pub(crate) const IPV4_LEN: usize = size_of::<castanet_wire::Ipv4Header>();

/// An owned packet: bytes in a frame, header offsets and annotations.
///
/// A packet is not `Clone`. [`Packet::share`] makes a second packet of the same
/// bytes; the owner that writes first copies them. Sharing counts owners
/// atomically, and only for packets that are shared at all.
/// Dropping a packet returns its frame to its pool.
///
/// The alignment is the size, so that no descriptor straddles two cache lines:
/// this makes views and `partition` 15 to 40 % faster.
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
    /// A [`PacketType`] as a number in the lower bits ([`TYPE_BITS`]), the trace tag
    /// above: `Option<Packet>` then has its niche in the pointer, where the test is cheapest.
    pub(crate) kind: u8,
    pub(crate) device: u16,
    /// Offset of the frame's end, saturated at `u16::MAX`.
    pub(crate) limit: u16,
}

const _: () = assert!(size_of::<Packet>() == 32 && size_of::<Option<Packet>>() == 32);

// SAFETY: the packet is the frame's only owner, or the frame is read-only and
// its owners are counted atomically; pools accept frames from any thread.
unsafe impl Send for Packet {}
// SAFETY: `&Packet` only allows reads; sharing and writing need `&mut Packet`.
unsafe impl Sync for Packet {}

/// Type of a packet by its link-layer destination, numbered as in Linux (`PACKET_HOST` ...).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketType {
    /// To this host.
    #[default]
    Host = 0,
    /// To all hosts on the link.
    Broadcast = 1,
    /// To a multicast group.
    Multicast = 2,
    /// To another host, received in promiscuous mode.
    OtherHost = 3,
    /// Sent by this host.
    Outgoing = 4,
    /// From this host to itself.
    Loopback = 5,
}

impl PacketType {
    /// The type of this number.
    #[inline]
    pub fn from_number(number: u8) -> Option<PacketType> {
        Some(match number {
            0 => PacketType::Host,
            1 => PacketType::Broadcast,
            2 => PacketType::Multicast,
            3 => PacketType::OtherHost,
            4 => PacketType::Outgoing,
            5 => PacketType::Loopback,
            _ => return None,
        })
    }
}

/// Whether a packet type is that of a link-level broadcast or multicast.
#[inline]
pub(crate) fn is_group(kind: u8) -> bool {
    const FIRST: u8 = PacketType::Broadcast as u8;
    // One comparison for both, whose numbers follow each other.
    kind.wrapping_sub(FIRST) <= PacketType::Multicast as u8 - FIRST
}

/// The checksums of a packet that its sender has to complete, as `CHECKSUM_PARTIAL` in
/// Linux. Until then the checksum of the IPv4 header is zero, and that of TCP or UDP is the
/// sum of the pseudo header. The packet's header offsets locate them.
///
/// An element sets this only if the port that will send the packet can complete checksums,
/// and no element on the path reads them: see `Setup::may_leave_sums` in the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartialChecksums {
    /// The checksum of the IPv4 header.
    pub ip: bool,
    /// The checksum of TCP or UDP.
    pub transport: bool,
}

impl Packet {
    /// The largest trace tag.
    pub const MAX_TRACE_TAG: u8 = u8::MAX >> TYPE_BITS;

    /// Makes a packet of these bytes in a frame of the general allocator, with
    /// [`DEFAULT_HEADROOM`] bytes of headroom. For tests and for callers without
    /// a pool.
    pub fn from_bytes(bytes: &[u8]) -> Packet {
        let mut packet = Packet::heap(DEFAULT_HEADROOM + bytes.len() + DEFAULT_HEADROOM);
        packet.fill(HEADER + DEFAULT_HEADROOM, bytes);
        packet
    }

    /// Makes an empty packet in a heap frame of `capacity` bytes.
    pub(crate) fn heap(capacity: usize) -> Packet {
        let frame = pool::heap::take(capacity);
        // SAFETY: `take` returned a new heap frame that ends at `HEADER +
        // capacity`; this packet is its only owner, and offset `HEADER` lies in it.
        unsafe { PacketTemplate::new(HEAP, HEADER + capacity, HEADER).packet(frame) }
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the length is 0.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The contents.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: invariants 1 and 2: the range lies in a live frame that no owner
        // writes to while it is borrowed. All bytes of frames are initialised.
        unsafe { std::slice::from_raw_parts(self.at(self.data.into()), self.len()) }
    }

    /// The contents, mutably. Copies them first if the frame is shared, and
    /// clears the mark that the packet is IPv4.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.make_exclusive();
        self.flags &= !IPV4_FLAGS;
        // SAFETY: invariants 1 and 2, and the packet is the frame's only owner.
        unsafe { std::slice::from_raw_parts_mut(self.at(self.data.into()), self.len()) }
    }

    /// Number of free bytes before the contents.
    #[inline]
    pub fn headroom(&self) -> usize {
        usize::from(self.data) - HEADER
    }

    /// Number of free bytes after the contents.
    #[inline]
    pub fn tailroom(&self) -> usize {
        self.limit() - self.end()
    }

    /// Makes a second packet with the same bytes and annotations, in the same
    /// frame. Each of the two copies before it writes, unless the other one has
    /// been dropped.
    #[inline]
    pub fn share(&mut self) -> Packet {
        if !self.count_owners(1) {
            return self.copy();
        }
        // SAFETY: the duplicate is the second owner, which was just counted.
        unsafe { std::ptr::read(self) }
    }

    /// Counts `n` more owners of the frame and marks it as shared: `n` duplicates of the
    /// descriptor are to become packets. Returns `false` and changes nothing if the frame has too
    /// many owners.
    #[inline]
    pub(crate) fn count_owners(&mut self, n: u16) -> bool {
        // SAFETY: this packet is an owner of the frame; the only one, unless the
        // flag `SHARED` is set.
        let counted = unsafe {
            if self.has(SHARED) {
                FrameHeader::add_owners(self.frame, n)
            } else {
                FrameHeader::begin_sharing(self.frame, n);
                true
            }
        };
        self.flags |= if counted { SHARED } else { 0 };
        counted
    }

    /// Number of the frame's pool, as [`Pool::id`](crate::Pool::id); 255 for the
    /// heap.
    #[inline]
    pub fn pool_id(&self) -> u8 {
        self.pool
    }

    /// Address of the frame, for a device driver that sends from it: the contents
    /// start [`Packet::headroom`] bytes behind its header.
    #[inline]
    pub fn frame(&self) -> NonNull<FrameHeader> {
        self.frame
    }

    /// Releases the frame to a device driver that fills or sends it. Copies first
    /// if the frame is shared. Annotations are lost. The frame counts as in use
    /// until [`Pool::adopt`](crate::Pool::adopt) makes a packet of it again;
    /// without that it leaks.
    #[inline]
    pub fn into_frame(mut self) -> NonNull<FrameHeader> {
        self.make_exclusive();
        let frame = self.frame;
        std::mem::forget(self);
        frame
    }

    /// Whether the frame may have other owners, so that a write may copy it.
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

    /// The destination annotation: the next hop of an IPv4 packet.
    #[inline]
    pub fn dst(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.dst.to_ne_bytes())
    }

    /// Sets the destination annotation.
    #[inline]
    pub fn set_dst(&mut self, dst: Ipv4Addr) {
        self.dst = u32::from_ne_bytes(dst.octets());
    }

    /// The `FIX_IP_SRC` annotation: whether `FixIPSrc` must replace the source address.
    #[inline]
    pub fn fix_ip_src(&self) -> bool {
        self.has(FIX_IP_SRC_FLAG)
    }

    /// Sets the `FIX_IP_SRC` annotation.
    #[inline]
    pub fn set_fix_ip_src(&mut self, fix: bool) {
        self.flags = self.flags & !FIX_IP_SRC_FLAG | if fix { FIX_IP_SRC_FLAG } else { 0 };
    }

    /// Returns the checksums that the packet's sender has to complete.
    #[inline]
    pub fn partial_checksums(&self) -> PartialChecksums {
        PartialChecksums { ip: self.has(PARTIAL_IP), transport: self.has(PARTIAL_TRANSPORT) }
    }

    /// Sets the checksums that the packet's sender has to complete.
    #[inline]
    pub fn set_partial_checksums(&mut self, partial: PartialChecksums) {
        let ip = if partial.ip { PARTIAL_IP } else { 0 };
        let transport = if partial.transport { PARTIAL_TRANSPORT } else { 0 };
        self.flags = self.flags & !(PARTIAL_IP | PARTIAL_TRANSPORT) | ip | transport;
    }

    /// The packet type: the kind of its link-layer destination.
    #[inline]
    pub fn packet_type(&self) -> PacketType {
        PacketType::from_number(self.kind & TYPE_MASK).unwrap_or_default()
    }

    /// Whether the packet came as a link-level broadcast or multicast.
    #[inline]
    pub fn is_to_group(&self) -> bool {
        is_group(self.kind & TYPE_MASK)
    }

    /// Sets the packet type.
    #[inline]
    pub fn set_packet_type(&mut self, kind: PacketType) {
        self.kind = self.kind & !TYPE_MASK | kind as u8;
    }

    /// The trace tag: 0, or a number below 32 by which a trace recognises the packet. It stays
    /// with the descriptor, so clones and copies have it too.
    #[inline]
    pub fn trace_tag(&self) -> u8 {
        self.kind >> TYPE_BITS
    }

    /// Sets the trace tag.
    ///
    /// # Panics
    /// If `tag` is 32 or more, in builds with debug assertions.
    #[inline]
    pub fn set_trace_tag(&mut self, tag: u8) {
        debug_assert!(tag <= Packet::MAX_TRACE_TAG);
        self.kind = self.kind & TYPE_MASK | tag << TYPE_BITS;
    }

    /// The device annotation: a number that a device element assigns to itself.
    #[inline]
    pub fn device(&self) -> u16 {
        self.device
    }

    /// Sets the device annotation.
    #[inline]
    pub fn set_device(&mut self, device: u16) {
        self.device = device;
    }

    /// Time of reception in nanoseconds since 1970 UTC; 0 if not set.
    #[inline]
    pub fn timestamp(&self) -> i64 {
        if !self.has(COLD) {
            return 0;
        }
        // SAFETY: the frame is live, and no owner writes to the header of a
        // shared frame.
        unsafe { (&raw const (*self.frame.as_ptr()).timestamp).read() }
    }

    /// Sets the time of reception in nanoseconds since 1970 UTC.
    #[inline]
    pub fn set_timestamp(&mut self, nanoseconds: i64) {
        self.make_exclusive_cold();
        // SAFETY: the frame is live, and the packet is its only owner.
        unsafe { (&raw mut (*self.frame.as_ptr()).timestamp).write(nanoseconds) }
    }

    /// Copies all annotations of `other`, including timestamp, packet type and device.
    pub fn copy_annotations(&mut self, other: &Packet) {
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

    /// Whether the frame is not shared and belongs to `pool`; a single comparison.
    #[inline]
    pub(crate) fn is_exclusive_in(&self, pool: u8) -> bool {
        let marks = u16::from_ne_bytes([self.flags & SHARED, self.pool]);
        marks == u16::from_ne_bytes([0, pool])
    }

    /// Offset of the first byte past the contents.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        usize::from(self.data) + self.len()
    }

    /// Address of `offset`, which must not lie beyond the frame's end.
    #[inline]
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= self.limit());
        // SAFETY: all callers pass an offset within the frame, or its end.
        unsafe { frame::at(self.frame, offset) }
    }

    /// Address of the cold annotations; their contents are valid only if `COLD` is set.
    #[inline]
    pub(crate) fn cold_annotations(&self) -> *mut u8 {
        // SAFETY: computes an address inside the frame's header, without an access.
        unsafe { (&raw mut (*self.frame.as_ptr()).annotations).cast() }
    }

    /// Makes this packet the only owner of its frame: copies it if the frame has other owners.
    #[inline]
    pub fn make_exclusive(&mut self) {
        if self.has(SHARED) {
            self.unshare();
        }
    }

    /// As [`Packet::make_exclusive`], and makes the cold fields valid: zeros
    /// unless they have been set.
    #[inline]
    pub(crate) fn make_exclusive_cold(&mut self) {
        self.make_exclusive();
        if !self.has(COLD) {
            self.flags |= COLD;
            // SAFETY: the frame is live, and the packet is its only owner.
            unsafe {
                (&raw mut (*self.frame.as_ptr()).timestamp).write(0);
                self.cold_annotations().write_bytes(0, anno::SIZE);
            }
        }
    }

    /// Makes this packet the only owner of a frame: of this one if all other
    /// owners have dropped it, else of a copy.
    #[cold]
    #[inline(never)]
    fn unshare(&mut self) {
        // SAFETY: this packet is one of the owners of the shared frame.
        if unsafe { FrameHeader::is_alone(self.frame) } {
            self.flags &= !SHARED;
        } else {
            self.copy_on_write();
        }
    }

    /// Offset of the frame's end.
    #[inline]
    pub(crate) fn limit(&self) -> usize {
        if self.limit < u16::MAX {
            return self.limit.into();
        }
        // SAFETY: invariant 1: the frame is live.
        HEADER + unsafe { FrameHeader::capacity(self.frame) }
    }
}

/// A summary for tests.
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
        // SAFETY: the packet is an owner of the frame, and does not use it again.
        unsafe {
            if !self.has(SHARED) || FrameHeader::remove_owner(self.frame) {
                pool::recycle(self.frame, self.pool);
            }
        }
    }
}
