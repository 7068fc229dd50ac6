//! Operations on a packet's contents: grow, shrink, replace and move them.

use std::mem::ManuallyDrop;

use crate::frame::{DEFAULT_HEADROOM, FrameHeader, HEADER, HEAP};
use crate::packet::{COLD, IPV4_FLAGS, IPV4_LEN, Packet, PacketType, SHARED};
use crate::pool::{self, Pool};
use crate::prefetch::prefetch;
use crate::raw::RawPacket;

/// Most bytes of stripped headers that `shift_data` preserves.
const MAX_STRIPPED: usize = 1 << 14;

impl Packet {
    /// Longest packet, in bytes, that an element may be configured to create: more than any link
    /// carries, and small enough that a burst of such packets fits in memory. Packets may
    /// become longer by other means.
    pub const MAX_ARG_LEN: u32 = 1 << 20;

    /// Grows the packet by `n` bytes at the front and returns these bytes, with
    /// unspecified contents. Never fails: moves the packet to a larger frame if
    /// the headroom is too short, and to a frame of its own if it is shared.
    ///
    /// # Panics
    /// If the packet becomes longer than 2 GiB.
    #[inline]
    pub fn push_front(&mut self, n: usize) -> &mut [u8] {
        if self.network < self.data {
            self.flags &= !IPV4_FLAGS; // the new bytes lie where the header was
        }
        if n <= self.headroom() && !self.has(SHARED) {
            self.data -= n as u16;
            self.len += n as u32;
        } else {
            self.grow_front(n);
        }
        // SAFETY: invariant 2: the packet has at least `n` bytes. Its frame is
        // not shared: `grow_front` copies a shared one.
        unsafe { std::slice::from_raw_parts_mut(self.at(self.data.into()), n) }
    }

    /// As [`Packet::push_front`], and sets the link-layer header to the first of
    /// the new bytes.
    #[inline]
    pub fn push_mac_header(&mut self, n: usize) -> &mut [u8] {
        self.push_front(n);
        self.mac = self.data;
        // SAFETY: as in `push_front`.
        unsafe { std::slice::from_raw_parts_mut(self.at(self.data.into()), n) }
    }

    /// Removes `n` bytes from the front; they become headroom. Returns `false`
    /// and changes nothing if the packet is shorter.
    #[inline]
    pub fn pull_front(&mut self, n: usize) -> bool {
        if n > self.len() {
            return false;
        }
        match u16::try_from(usize::from(self.data) + n) {
            Ok(data) => {
                self.data = data;
                self.len -= n as u32;
            }
            Err(_) => self.pull_front_slow(n),
        }
        true
    }

    /// Grows the packet by `n` zero bytes at the back and returns these bytes.
    /// Never fails, as [`Packet::push_front`].
    ///
    /// # Panics
    /// If the packet becomes longer than 2 GiB.
    pub fn put_back(&mut self, n: usize) -> &mut [u8] {
        let room = self.tailroom();
        if n > room || self.has(SHARED) && self.has_other_owners() {
            let tail = if n > room { n.saturating_add(DEFAULT_HEADROOM) } else { room };
            self.relocate(self.data.into(), 0, tail);
        }
        let start = self.end();
        self.len += n as u32;
        // SAFETY: the frame has room for `n` more bytes and is not shared:
        // otherwise `relocate` moved the packet to one with these properties.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.at(start), n) };
        bytes.fill(0);
        bytes
    }

    /// Adds `n` bytes behind the contents, which `write` writes; returns whether there is room for them.
    ///
    /// # Safety
    /// `write` writes to all `n` bytes from the address on that it gets, and to no others.
    #[inline]
    pub unsafe fn put_back_with(&mut self, n: usize, write: impl FnOnce(*mut u8)) -> bool {
        if n > self.tailroom() || self.has(SHARED) && self.has_other_owners() {
            return false;
        }
        write(self.at(self.end()));
        self.len += n as u32;
        true
    }

    /// Removes `n` bytes from the back. Returns `false` and changes nothing if
    /// the packet is shorter.
    #[inline]
    pub fn take_back(&mut self, n: usize) -> bool {
        let Some(len) = self.len().checked_sub(n) else { return false };
        self.truncate(len);
        true
    }

    /// Shortens the packet to at most `len` bytes.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            self.len = len as u32;
            if usize::from(self.network) + IPV4_LEN > self.end() {
                self.flags &= !IPV4_FLAGS;
            }
        }
    }

    /// As [`Packet::truncate`], and clears the offsets of headers behind the new end.
    #[inline]
    pub fn cut(&mut self, len: usize) {
        self.truncate(len);
        let end = self.end();
        for header in [&mut self.mac, &mut self.network, &mut self.transport] {
            if usize::from(*header) > end {
                *header = 0;
            }
        }
    }

    /// Replaces the contents by `bytes`, behind the headroom of a new packet.
    /// Clears the header offsets and keeps the annotations.
    #[inline]
    pub fn replace_contents(&mut self, bytes: &[u8]) {
        let data = HEADER + DEFAULT_HEADROOM;
        // `limit` saturates at `u16::MAX`: a longer frame takes the slow path if needed.
        if data + bytes.len() > usize::from(self.limit) || self.has(SHARED) {
            return self.replace_slow(bytes);
        }
        self.clear_headers();
        // SAFETY: the range was checked against the frame's end, and the frame
        // is not shared.
        unsafe { self.set_contents(data, bytes) }
    }

    /// Makes it a packet that has just been received, with a copy of `bytes`: the link-layer header
    /// is where they begin, and there are no other offsets and no annotations.
    #[inline]
    pub fn receive(&mut self, bytes: &[u8]) {
        let data = HEADER + DEFAULT_HEADROOM;
        if data + bytes.len() > usize::from(self.limit) || self.has(SHARED) {
            return self.receive_slow(bytes);
        }
        let new = RawPacket::of(self).received(data as u16, bytes.len() as u32);
        // SAFETY: the frame is not shared, and its end was checked, so that the words are those of
        // a packet in the same frame and the range lies in it. `bytes` cannot overlap the frame,
        // which belongs to this packet alone, borrowed mutably. Writing over the packet drops
        // nothing.
        unsafe {
            std::ptr::from_mut(self).cast::<RawPacket>().write(new);
            self.at(data).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// Prefetches the cache line to which [`Packet::receive`] writes the first bytes. Callers prefetch those of some
    /// packets ahead, because a store that misses the L1 cache holds up all stores behind it.
    #[inline]
    pub fn prefetch_contents(&self) {
        prefetch(self.frame.as_ptr().cast::<u8>().wrapping_add(HEADER + DEFAULT_HEADROOM));
    }

    /// Prefetches the cache line of the first bytes, and that of annotations in the frame if there are any: for a packet that has
    /// waited in a queue.
    #[inline]
    pub fn prefetch(&self) {
        let frame = self.frame.as_ptr().cast::<u8>();
        prefetch(frame.wrapping_add(self.data.into()));
        if self.has(COLD) {
            prefetch(frame);
        }
    }

    /// [`Packet::receive`] for a shared frame, or one that is too short for the usual headroom or for
    /// `bytes`.
    #[cold]
    fn receive_slow(&mut self, bytes: &[u8]) {
        self.replace_slow(bytes);
        (self.mac, self.dst, self.paint, self.device) = (self.data, 0, 0, 0);
        (self.flags, self.kind) = (0, PacketType::Host as u8);
    }

    /// [`Packet::replace_contents`] for a shared frame, or one that is too short
    /// for the usual headroom or for `bytes`.
    #[cold]
    fn replace_slow(&mut self, bytes: &[u8]) {
        self.clear_headers();
        self.len = 0;
        let room = self.limit() - HEADER;
        if bytes.len() > room || self.has_other_owners() {
            self.data = HEADER as u16;
            self.relocate(HEADER, 0, 2 * DEFAULT_HEADROOM + bytes.len());
        }
        let room = self.limit() - HEADER;
        self.fill(HEADER + DEFAULT_HEADROOM.min(room - bytes.len()), bytes);
    }

    /// Moves the contents, and stripped headers before them, by `offset` bytes
    /// within the frame (towards the back if positive), which changes their
    /// alignment. Moves the packet to another frame if this one is too small;
    /// the new address is then the wanted one modulo 64.
    pub fn shift_data(&mut self, offset: isize) {
        let stripped = self.stripped_len().min(MAX_STRIPPED);
        let data = (usize::from(self.data) as isize).saturating_add(offset);
        let fits = data >= (HEADER + stripped) as isize
            && data <= isize::from(i16::MAX)
            && data as usize + self.len() <= self.limit();
        if fits && !(self.has(SHARED) && self.has_other_owners()) {
            // SAFETY: both ranges lie in the frame, as `fits` says of the new
            // one, and the frame is not shared.
            unsafe {
                let from = self.at(usize::from(self.data) - stripped);
                from.offset(offset).copy_from(from, stripped + self.len());
            }
            self.rebase(data as usize, 0);
            return;
        }
        let line = HEADER as isize;
        let data = HEADER + stripped.next_multiple_of(HEADER) + data.rem_euclid(line) as usize;
        self.relocate(data, 0, DEFAULT_HEADROOM);
    }

    /// The slow path of `push_front`: moves the packet to another frame.
    #[cold]
    fn grow_front(&mut self, n: usize) {
        if n <= self.headroom() && !self.has_other_owners() {
            self.data -= n as u16;
            self.len += n as u32;
            return;
        }
        match self.headroom().checked_sub(n) {
            Some(left) => self.relocate(HEADER + left, n, self.tailroom()),
            None => self.relocate(HEADER + DEFAULT_HEADROOM, n, DEFAULT_HEADROOM),
        }
    }

    /// The slow path of `pull_front`: the remaining bytes begin too far from the
    /// frame's start for a 16-bit offset, so that they have to be moved.
    #[cold]
    fn pull_front_slow(&mut self, n: usize) {
        let rest = self.bytes()[n..].to_vec();
        self.replace_contents(&rest);
    }

    /// Sets the contents to `bytes`, at offset `data`.
    #[inline]
    pub(crate) fn fill(&mut self, data: usize, bytes: &[u8]) {
        assert!(HEADER <= data && data + bytes.len() <= self.limit() && !self.has(SHARED));
        // SAFETY: the assertion checked the range, and that the frame is not
        // shared.
        unsafe { self.set_contents(data, bytes) }
    }

    /// As [`Packet::fill`], without the checks.
    ///
    /// # Safety
    /// The frame must not be shared, and have room for the bytes from offset
    /// `data` on, which must not lie before the end of the frame's header.
    #[inline]
    pub(crate) unsafe fn set_contents(&mut self, data: usize, bytes: &[u8]) {
        self.data = data as u16;
        self.len = bytes.len() as u32;
        // SAFETY: the caller guarantees the room. `bytes` cannot overlap the
        // target: the frame belongs to this packet alone, which is borrowed
        // mutably.
        unsafe { self.at(data).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// Moves the packet, with headers and annotations, into a frame of `pool`, and frees its old
    /// frame. A packet that is too long for the pool's frames moves to the heap, or stays there.
    /// Returns `false` and changes nothing if the pool has no free frame.
    pub fn move_to(&mut self, pool: &Pool) -> bool {
        let (data, stripped) = (usize::from(self.data), self.stripped_len());
        if self.heap_bytes_in(pool) > 0 {
            if self.pool == HEAP {
                return true;
            }
            let fresh = Packet::heap(self.end() - HEADER);
            self.change_frame(fresh, data, 0);
            return true;
        }
        // The same offset, or behind the usual headroom (or the stripped headers) if that is
        // beyond the pool's frames.
        let offsets = [data, HEADER + pool.headroom().max(stripped)];
        let fits =
            |&data: &usize| data + self.len() <= HEADER + pool.headroom() + pool.data_capacity();
        let Some(data) = offsets.into_iter().find(fits) else { return false };
        let Some(fresh) = pool::packet_in(pool, data + self.len()) else { return false };
        self.change_frame(fresh, data, 0);
        true
    }

    /// Whether the packet lies on the heap.
    #[inline]
    pub fn is_on_heap(&self) -> bool {
        self.pool == HEAP
    }

    /// Number of bytes that the packet takes on the heap, or would take there if it moved to
    /// `pool` ([`Packet::move_to`]), because it is too long for that pool's frames; 0 if it
    /// would fit in one of them.
    pub fn heap_bytes_in(&self, pool: &Pool) -> usize {
        match (pool.data_capacity() < self.stripped_len() + self.len(), self.pool == HEAP) {
            (false, _) => 0,
            (true, true) => self.limit(),
            (true, false) => self.end(),
        }
    }

    /// Whether the packet's pool is low, or the heap, if the packet lies there. An element that
    /// stores packets should then move this one to another pool ([`Packet::move_to`]).
    #[inline]
    pub fn pool_is_low(&self) -> bool {
        pool::is_low(self.pool)
    }

    /// Moves into another frame of the same pool, so that the contents start at
    /// offset `data` with `grow` new bytes and have at least `tail` bytes of
    /// room behind them. Stripped headers before the contents are copied as far
    /// as there is room.
    pub(crate) fn relocate(&mut self, data: usize, grow: usize, tail: usize) {
        let fresh = self.frame_for(data, grow, tail);
        self.change_frame(fresh, data, grow);
    }

    /// Moves the packet into the frame of `fresh`, and frees its old frame.
    fn change_frame(&mut self, fresh: Packet, data: usize, grow: usize) {
        let (frame, pool, shared) = (self.frame, self.pool, self.has(SHARED));
        self.copy_to(fresh, data, grow);
        // SAFETY: `self` was an owner of the old frame, and now owns another
        // one; the old one is recycled if there are no other owners.
        unsafe {
            if !shared || FrameHeader::remove_owner(frame) {
                pool::recycle(frame, pool);
            }
        }
    }

    /// Allocates an empty packet with room for [`Packet::relocate`].
    fn frame_for(&self, data: usize, grow: usize, tail: usize) -> Packet {
        let end = (data + self.len()).saturating_add(grow).saturating_add(tail);
        pool::packet_like(self.pool, end)
    }

    /// Moves a shared packet to a frame of its own.
    pub(crate) fn copy_on_write(&mut self) {
        let fresh = ManuallyDrop::new(pool::packet_like(self.pool, self.limit()));
        self.copy_frame_to(&fresh);
        let (frame, pool) = (self.frame, self.pool);
        (self.frame, self.pool, self.limit) = (fresh.frame, fresh.pool, fresh.limit);
        self.flags &= !SHARED;
        // SAFETY: `self` was an owner of the old, shared frame, and now owns another one; the old one
        // is recycled if there are no other owners.
        unsafe {
            if FrameHeader::remove_owner(frame) {
                pool::recycle(frame, pool);
            }
        }
    }

    /// Makes a packet with a copy of the bytes and annotations, in a frame of its own.
    pub fn copy(&self) -> Packet {
        self.copy_in_frame_of(pool::packet_like(self.pool, self.limit()))
    }

    /// [`Packet::copy`] in the frame of `fresh`, an empty packet that owns it alone. The frame must end no
    /// earlier than this one.
    #[inline]
    pub(crate) fn copy_in_frame_of(&self, fresh: Packet) -> Packet {
        self.copy_frame_to(&fresh);
        let fresh = ManuallyDrop::new(fresh);
        // SAFETY: the frame is that of `fresh`, which is not dropped, and has the bytes, header offsets
        // and annotations of this packet.
        unsafe { RawPacket::of(self).in_frame_of(RawPacket::of(&fresh)).into_packet() }
    }

    /// Copies the contents to the same offset of the frame of `fresh`, an empty packet that owns it alone,
    /// with stripped headers before them, and the annotations if they are set.
    ///
    /// # Panics
    /// If that frame ends before this one.
    #[inline]
    fn copy_frame_to(&self, fresh: &Packet) {
        assert!(self.limit() <= fresh.limit(), "a shorter frame");
        debug_assert!(fresh.is_empty() && !fresh.has(SHARED), "a frame in use");
        let start = usize::from(self.data) - self.stripped_len().min(self.headroom());
        // SAFETY: by invariants 2 and 3 the bytes from `start` to `end` lie in the frame, behind its
        // header. The new frame ends no earlier by the assertion; it is another one and has no other
        // owner than `fresh`, as `packet_like` and `take_run` have just taken it.
        unsafe {
            fresh.at(start).copy_from_nonoverlapping(self.at(start), self.end() - start);
            if self.has(COLD) {
                FrameHeader::copy_annotations(self.frame, fresh.frame);
            }
        }
    }

    /// Whether the frame has other owners: marks it as not shared if they have all dropped it.
    #[cold]
    #[inline(never)]
    fn has_other_owners(&mut self) -> bool {
        // SAFETY: this packet is an owner of the frame.
        let alone = !self.has(SHARED) || unsafe { FrameHeader::is_alone(self.frame) };
        if alone {
            self.flags &= !SHARED;
        }
        !alone
    }

    /// Copies the packet into the frame of `fresh`, which must have the room, as
    /// [`Packet::relocate`]. The caller remains the owner of the old frame.
    fn copy_to(&mut self, fresh: Packet, data: usize, grow: usize) {
        let stripped = self.stripped_len().min((data - HEADER).saturating_add(grow));
        let start = data + grow; // no overflow: no frame is that long
        assert!(HEADER <= data && start + self.len() <= fresh.limit(), "beyond the frame");
        // SAFETY: the source range lies in the old frame by invariants 2 and 3.
        // The target range lies in the new frame: the assertion checked its
        // end, and `stripped` was limited so that it starts behind the header.
        // The frames are different, and `fresh` is the new one's only owner.
        unsafe {
            fresh.at(start - stripped).copy_from_nonoverlapping(
                self.at(usize::from(self.data) - stripped),
                stripped + self.len(),
            );
        }
        if self.has(COLD) {
            // SAFETY: `self` is an owner of its frame, and `fresh` the only one of another.
            unsafe { FrameHeader::copy_annotations(self.frame, fresh.frame) };
        }
        self.flags &= !SHARED;
        self.limit = fresh.limit;
        self.pool = fresh.pool;
        self.frame = fresh.frame;
        std::mem::forget(fresh);
        self.rebase(data, grow);
    }
}
