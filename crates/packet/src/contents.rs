//! A packet's contents: growing, shrinking and moving them.

use crate::frame::{DEFAULT_HEADROOM, FrameHeader, HEADER, HEAP};
use crate::packet::{COLD, IPV4, IPV4_LEN, Packet, SHARED};
use crate::pool::{self, Pool};

/// How far before the contents headers are still taken along.
const MAX_LEAD: usize = 1 << 14;

impl Packet {
    /// The longest that elements make a packet by an argument: more than any link carries, and
    /// little enough that a burst of them has room. Other packets may be longer.
    pub const LONGEST: u32 = 1 << 20;

    /// Grows the packet by `n` bytes at the front and gives these, with
    /// unspecified contents. Never fails: moves to a larger frame if the
    /// headroom is short, and to an own one if the frame is shared.
    ///
    /// # Panics
    /// If the packet gets longer than 2 GiB.
    #[inline]
    pub fn push_front(&mut self, n: usize) -> &mut [u8] {
        if self.network < self.data {
            self.flags &= !IPV4; // the new bytes lie where the header was
        }
        if n <= self.headroom() && !self.has(SHARED) {
            self.data -= n as u16;
            self.len += n as u32;
        } else {
            self.grow_front(n);
        }
        // SAFETY: invariant 2: at least `n` bytes; the frame is ours alone.
        unsafe { std::slice::from_raw_parts_mut(self.at(self.data.into()), n) }
    }

    /// As [`Packet::push_front`], and says that the link-layer header starts
    /// with the new bytes.
    #[inline]
    pub fn push_mac_header(&mut self, n: usize) -> &mut [u8] {
        self.push_front(n);
        self.mac = self.data;
        // SAFETY: as in `push_front`.
        unsafe { std::slice::from_raw_parts_mut(self.at(self.data.into()), n) }
    }

    /// Takes `n` bytes off the front; `false` and nothing done if there are
    /// fewer. They become headroom.
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
            Err(_) => self.pull_far(n),
        }
        true
    }

    /// Grows the packet by `n` zero bytes at the back and gives these. Never
    /// fails, as [`Packet::push_front`].
    ///
    /// # Panics
    /// If the packet gets longer than 2 GiB.
    pub fn put_back(&mut self, n: usize) -> &mut [u8] {
        let room = self.tailroom();
        if self.has(SHARED) || n > room {
            let tail = if n > room { n.saturating_add(DEFAULT_HEADROOM) } else { room };
            self.relocate(self.data.into(), 0, tail);
        }
        let start = self.end();
        self.len += n as u32;
        // SAFETY: there was room for `n` more bytes, in a frame of our own.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.at(start), n) };
        bytes.fill(0);
        bytes
    }

    /// Takes `n` bytes off the back; `false` and nothing done if there are
    /// fewer.
    #[inline]
    pub fn take_back(&mut self, n: usize) -> bool {
        let Some(len) = self.len().checked_sub(n) else { return false };
        self.truncate(len);
        true
    }

    /// Takes off the back what is beyond `len` bytes.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            self.len = len as u32;
            if usize::from(self.network) + IPV4_LEN > self.end() {
                self.flags &= !IPV4;
            }
        }
    }

    /// Puts these bytes in place of the contents, after the headroom of a
    /// new packet; the header offsets are forgotten, annotations are kept.
    #[inline]
    pub fn replace_contents(&mut self, bytes: &[u8]) {
        let data = HEADER + DEFAULT_HEADROOM;
        // Where the frame ends beyond what `limit` can say, that is still a bound.
        if data + bytes.len() > usize::from(self.limit) || self.has(SHARED) {
            return self.replace_elsewhere(bytes);
        }
        self.forget_headers();
        // SAFETY: in the frame, as was just seen, which is ours alone.
        unsafe { self.set_contents(data, bytes) }
    }

    /// As [`Packet::replace_contents`], where there is less room than usual.
    #[cold]
    fn replace_elsewhere(&mut self, bytes: &[u8]) {
        self.forget_headers();
        self.len = 0;
        let room = self.limit() - HEADER;
        if bytes.len() > room || self.has(SHARED) {
            self.data = HEADER as u16;
            self.relocate(HEADER, 0, 2 * DEFAULT_HEADROOM + bytes.len());
        }
        let room = self.limit() - HEADER;
        self.fill(HEADER + DEFAULT_HEADROOM.min(room - bytes.len()), bytes);
    }

    /// Moves the bytes, and the headers before them, by `offset` within the
    /// frame (towards the back if positive), so that they come to lie at
    /// another address; moves to another frame if this one is too small.
    /// There the address has the same remainder modulo 64.
    pub fn shift_data(&mut self, offset: isize) {
        let lead = self.lead().min(MAX_LEAD);
        let data = (usize::from(self.data) as isize).saturating_add(offset);
        let fits = data >= (HEADER + lead) as isize
            && data <= isize::from(i16::MAX)
            && data as usize + self.len() <= self.limit();
        if fits && !self.has(SHARED) {
            // SAFETY: both ranges lie in the frame, which is ours alone.
            unsafe {
                let from = self.at(usize::from(self.data) - lead);
                from.offset(offset).copy_from(from, lead + self.len());
            }
            self.place(data as usize, 0);
            return;
        }
        let line = HEADER as isize;
        let data = HEADER + lead.next_multiple_of(HEADER) + data.rem_euclid(line) as usize;
        self.relocate(data, 0, DEFAULT_HEADROOM);
    }

    /// The way of `push_front` that needs another frame.
    #[cold]
    fn grow_front(&mut self, n: usize) {
        match self.headroom().checked_sub(n) {
            Some(left) => self.relocate(HEADER + left, n, self.tailroom()),
            None => self.relocate(HEADER + DEFAULT_HEADROOM, n, DEFAULT_HEADROOM),
        }
    }

    /// The way of `pull_front` where what is left lies too far from the
    /// frame's start to say so in 16 bits.
    #[cold]
    fn pull_far(&mut self, n: usize) {
        let rest = self.bytes()[n..].to_vec();
        self.replace_contents(&rest);
    }

    /// Makes `bytes` the contents, at offset `data`.
    #[inline]
    pub(crate) fn fill(&mut self, data: usize, bytes: &[u8]) {
        assert!(HEADER <= data && data + bytes.len() <= self.limit() && !self.has(SHARED));
        // SAFETY: in the frame, which is ours alone.
        unsafe { self.set_contents(data, bytes) }
    }

    /// As [`Packet::fill`], for who has looked.
    ///
    /// # Safety
    /// The frame must be the packet's alone, and have room for the bytes from
    /// offset `data` on, which must not lie before the header's end.
    #[inline]
    unsafe fn set_contents(&mut self, data: usize, bytes: &[u8]) {
        self.data = data as u16;
        self.len = bytes.len() as u32;
        // SAFETY: the caller has seen that they fit, in a frame that nobody
        // else can have `bytes` in.
        unsafe { self.at(data).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// Moves the packet, with headers and annotations, into a frame of `pool`, and gives up the one
    /// that it had; onto the heap, where it may be already, if it is too long for the pool's
    /// frames. `false`, and nothing done, if the pool has no frame left.
    pub fn move_to(&mut self, pool: &Pool) -> bool {
        let (data, lead) = (usize::from(self.data), self.lead());
        if self.heap_bytes_in(pool) > 0 {
            if self.pool == HEAP {
                return true;
            }
            let fresh = pool::packet_like(HEAP, self.end());
            self.change_frame(fresh, data, 0);
            return true;
        }
        // Where the same place lies beyond the frame, behind the usual headroom or the headers.
        let places = [data, HEADER + pool.headroom().max(lead)];
        let fits =
            |&data: &usize| data + self.len() <= HEADER + pool.headroom() + pool.data_capacity();
        let Some(data) = places.into_iter().find(fits) else { return false };
        let Some(fresh) = pool::packet_in(pool, data + self.len()) else { return false };
        self.change_frame(fresh, data, 0);
        true
    }

    /// Whether the packet lies on the heap.
    #[inline]
    pub fn is_on_heap(&self) -> bool {
        self.pool == HEAP
    }

    /// How many bytes the packet takes on the heap, or would take there if it moved to `pool`
    /// ([`Packet::move_to`]), for it is too long for that pool's frames; 0 if it is not.
    pub fn heap_bytes_in(&self, pool: &Pool) -> usize {
        match (pool.data_capacity() < self.lead() + self.len(), self.pool == HEAP) {
            (false, _) => 0,
            (true, true) => self.limit(),
            (true, false) => self.end(),
        }
    }

    /// Whether the packet's pool, or the heap where it lies there, is low, so that whoever keeps it
    /// is to move it elsewhere ([`Packet::move_to`]).
    #[inline]
    pub fn is_scarce(&self) -> bool {
        pool::is_low(self.pool)
    }

    /// Moves into another frame of the same pool; see [`Packet::relocate_from`].
    pub(crate) fn relocate(&mut self, data: usize, grow: usize, tail: usize) {
        let fresh = self.frame_for(data, grow, tail);
        self.change_frame(fresh, data, grow);
    }

    /// Moves into the frame of `fresh`, and gives up the one that it had.
    fn change_frame(&mut self, fresh: Packet, data: usize, grow: usize) {
        let (frame, pool, shared) = (self.frame, self.pool, self.has(SHARED));
        self.copy_to(fresh, data, grow);
        // SAFETY: `self` owned that frame and now owns another.
        unsafe {
            if !shared || FrameHeader::remove_owner(frame) {
                pool::recycle(frame, pool);
            }
        }
    }

    /// Copies into another frame, so that the contents start at offset `data`
    /// with `grow` new bytes and have at least `tail` bytes of room after
    /// them; the caller still owns the frame that was left. Headers before
    /// the contents come along as far as there is room.
    pub(crate) fn relocate_from(&mut self, data: usize, grow: usize, tail: usize) {
        let fresh = self.frame_for(data, grow, tail);
        self.copy_to(fresh, data, grow);
    }

    /// An empty packet in a frame with room for [`Packet::relocate_from`].
    fn frame_for(&self, data: usize, grow: usize, tail: usize) -> Packet {
        let end = (data + self.len()).saturating_add(grow).saturating_add(tail);
        pool::packet_like(self.pool, end)
    }

    /// Copies into the frame of `fresh`, which must have the room, as [`Packet::relocate_from`].
    fn copy_to(&mut self, mut fresh: Packet, data: usize, grow: usize) {
        let lead = self.lead().min((data - HEADER).saturating_add(grow));
        let start = data + grow; // no overflow: such frames do not exist
        assert!(HEADER <= data && start + self.len() <= fresh.limit(), "beyond the frame");
        // SAFETY: the source range lies in the old frame by invariants 2 and
        // 3, the target in the new one, as was just seen; the frames are
        // different and the new one is ours alone.
        unsafe {
            fresh.at(start - lead).copy_from_nonoverlapping(
                self.at(usize::from(self.data) - lead),
                lead + self.len(),
            );
        }
        if self.has(COLD) {
            fresh.set_timestamp(self.timestamp());
            fresh.set_anno_bytes(0, self.annotations());
        }
        self.flags &= !SHARED;
        self.limit = fresh.limit;
        self.pool = fresh.pool;
        self.frame = fresh.frame;
        std::mem::forget(fresh);
        self.place(data, grow);
    }
}
