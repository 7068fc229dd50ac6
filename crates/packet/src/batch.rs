//! Batches: arrays of packets that elements process together.

use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::ops::{AddAssign, Index, IndexMut};

use crate::heap_account::nobody_pays;
use crate::packet::Packet;
use crate::pool;
use crate::raw::RawPacket;

/// Default number of packets in a burst.
pub const BURST: usize = 64;

/// Maximum number of packets in a burst.
pub const MAX_BURST: usize = 256;

/// Numbers of packets and of their bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct PacketTotals {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl AddAssign for PacketTotals {
    #[inline]
    fn add_assign(&mut self, other: PacketTotals) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// An array of packets that elements process together.
///
/// An empty batch has no buffer. The first packet gets one, from the buffers
/// that the thread has cached, so that the steady state does not allocate.
/// Dropping a batch drops its packets, in bulk.
#[derive(Debug, Default)]
pub struct Batch {
    /// `ManuallyDrop`, because the batch's own destructor recycles frames in bulk.
    pub(crate) packets: ManuallyDrop<Vec<Packet>>,
}

impl Batch {
    /// Makes an empty batch.
    #[inline]
    pub const fn new() -> Self {
        Batch { packets: ManuallyDrop::new(Vec::new()) }
    }

    /// Number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether the batch has no packets.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Adds a packet at the end.
    #[inline]
    pub fn push(&mut self, packet: Packet) {
        if self.packets.len() == self.packets.capacity() {
            self.grow(1);
        }
        self.packets.push(packet);
    }

    /// Removes the last packet and returns it.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet> {
        self.packets.pop()
    }

    /// Iterates over the packets in order.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, Packet> {
        self.packets.iter()
    }

    /// Iterates over the packets in order, mutably.
    #[inline]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Packet> {
        self.packets.iter_mut()
    }

    /// Bytes of all packets.
    #[inline]
    pub fn byte_count(&self) -> u64 {
        let bytes = |packets: &[Packet]| packets.iter().map(|it| it.len() as u64).sum::<u64>();
        // By eight, so that the loop itself is a small part of the work.
        let (eights, rest) = self.packets.as_chunks::<8>();
        eights.iter().map(|eight| bytes(eight)).sum::<u64>() + bytes(rest)
    }

    /// Numbers of the packets and of their bytes.
    #[inline]
    pub fn totals(&self) -> PacketTotals {
        PacketTotals { packets: self.len() as u64, bytes: self.byte_count() }
    }

    /// The packets as a slice.
    #[inline]
    pub fn as_slice(&self) -> &[Packet] {
        &self.packets
    }

    /// The packets as a mutable slice.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [Packet] {
        &mut self.packets
    }

    /// Makes `n` batches with a second packet of each of these, as [`Packet::share`], which the
    /// iterator gives one by one. The owners of each frame are counted once for all.
    pub fn clones(&mut self, n: u16) -> Clones<'_> {
        if n > 0 {
            for packet in self.iter_mut() {
                if !packet.count_owners(n) {
                    *packet = packet.copy();
                    packet.count_owners(n);
                }
            }
        }
        Clones { packets: &self.packets, left: n }
    }

    /// Makes a batch with a copy of each packet, as [`Packet::copy`].
    pub fn copies(&self) -> Batch {
        let mut batch = Batch::new();
        batch.reserve(self.len());
        let mut left = &self.packets[..];
        while let Some(first) = left.first() {
            let copy = |packet: &Packet, fresh| batch.push(packet.copy_in_frame_of(fresh));
            // SAFETY: a copy uses no frame but that of `fresh`, and the batch has room for it.
            let copied = unsafe { pool::take_run(left, copy) };
            if copied == 0 {
                // Refills the thread's cache, or asks the heap.
                batch.push(first.copy());
            }
            left = &left[copied.max(1)..];
        }
        batch
    }

    /// Removes all packets, in order, and keeps the buffer.
    #[inline]
    pub fn drain(&mut self) -> std::vec::Drain<'_, Packet> {
        self.packets.drain(..)
    }

    /// Drops all packets, in bulk.
    #[inline]
    pub fn clear(&mut self) {
        pool::recycle_all(&mut self.packets);
    }

    /// The packets as words, for a device driver that sends from their frames.
    #[inline]
    pub fn as_raw(&self) -> &[RawPacket] {
        let packets: &[Packet] = &self.packets;
        // SAFETY: `Packet` and `RawPacket` have the same size and alignment (asserted
        // in `raw`), both begin with the frame's address, and the rest of a packet
        // is 24 bytes without padding, which are valid as integers.
        unsafe { std::slice::from_raw_parts(packets.as_ptr().cast(), packets.len()) }
    }

    /// Removes the first `n` packets without freeing their frames, which now
    /// belong to a device driver, as after [`Packet::into_frame`]. The caller
    /// has told the driver their addresses before.
    ///
    /// # Panics
    /// If the batch has fewer than `n` packets.
    ///
    /// # Safety
    /// None of these packets may be shared: the driver may write to the
    /// frames, and give them back to their pool.
    #[inline]
    pub unsafe fn release(&mut self, n: usize) {
        debug_assert!(self.packets[..n].iter().all(|packet| !packet.is_shared()));
        let rest = self.packets[n..].len();
        // SAFETY: the first `n` packets are forgotten without a drop; the
        // `rest` packets behind them move to the start of the buffer, so that
        // exactly the first `rest` slots hold packets.
        unsafe {
            self.packets.set_len(0);
            if rest > 0 {
                let first = self.packets.as_mut_ptr();
                first.copy_from(first.add(n), rest);
                self.packets.set_len(rest);
            }
        }
    }

    /// Makes the batch empty without dropping its packets; the caller has copied the descriptors, and
    /// so become the owner.
    #[inline]
    pub(crate) fn forget_all(&mut self) {
        // SAFETY: 0 is never more than the length.
        unsafe { self.packets.set_len(0) };
    }

    /// Drops the packets beyond the first `len`.
    pub fn truncate(&mut self, len: usize) {
        drop(self.split_off(len));
    }

    /// Moves the packets of `other` to the end of this batch.
    #[inline]
    pub fn append(&mut self, other: &mut Batch) {
        if self.is_empty() && self.packets.capacity() < other.len() {
            mem::swap(self, other);
        } else {
            self.reserve(other.len());
            self.packets.append(&mut other.packets);
        }
    }

    /// Removes the packets from index `at` on and returns them; none if there are fewer.
    pub fn split_off(&mut self, at: usize) -> Batch {
        let mut rest = Batch::new();
        if at == 0 {
            mem::swap(self, &mut rest);
        } else if at < self.len() {
            rest.reserve(self.len() - at);
            rest.packets.extend(self.packets.drain(at..));
        }
        rest
    }

    /// Exchanges two packets.
    ///
    /// # Panics
    /// If an index is out of range.
    #[inline]
    pub fn swap(&mut self, a: usize, b: usize) {
        self.packets.swap(a, b);
    }

    /// Removes the packet at `index` and returns it; those behind it move up.
    ///
    /// # Panics
    /// If `index` is out of range.
    pub fn remove(&mut self, index: usize) -> Packet {
        self.packets.remove(index)
    }

    /// Reserves room for `n` more packets.
    #[inline]
    pub fn reserve(&mut self, n: usize) {
        if n > self.packets.capacity() - self.packets.len() {
            self.grow(n);
        }
    }

    /// Keeps the packets whose fate is `keep`, in order, and passes the
    /// others to `sink` with their fates, in order. `fates` has one entry for
    /// each packet.
    ///
    /// # Panics
    /// If the lengths of `fates` and of the batch differ.
    #[inline]
    pub fn partition(&mut self, fates: &[u8], keep: u8, mut sink: impl FnMut(u8, Packet)) {
        self.separate(fates, keep, |fate, packets| sink(fate, packets.remove()));
    }

    /// Keeps the packets whose fate is `keep`; `take` takes each of the others out.
    #[inline(always)]
    pub(crate) fn separate(
        &mut self,
        fates: &[u8],
        keep: u8,
        mut take: impl FnMut(u8, &mut Compaction),
    ) {
        assert_eq!(fates.len(), self.len(), "one fate a packet");
        let kept = common_prefix(fates, keep);
        if kept == fates.len() {
            return;
        }
        let mut packets = Compaction::new(&mut self.packets, kept);
        for &fate in &fates[kept..] {
            if fate == keep {
                packets.keep();
            } else {
                take(fate, &mut packets);
            }
        }
    }

    /// Keeps the packets for which `predicate` is true, in order, and drops the others.
    pub fn retain(&mut self, mut predicate: impl FnMut(&mut Packet) -> bool) {
        let mut packets = Compaction::new(&mut self.packets, 0);
        while let Some(packet) = packets.peek() {
            match predicate(packet) {
                true => packets.keep(),
                false => drop(packets.remove()),
            }
        }
    }

    /// Removes the packets at `indices`, which must ascend, and passes them to
    /// `sink`. Removes their fates too, so that entry `i` of `fates` still
    /// belongs to packet `i`.
    ///
    /// # Panics
    /// If there are fewer fates than packets.
    pub fn extract(
        &mut self,
        indices: impl Iterator<Item = usize>,
        fates: &mut [u8],
        mut sink: impl FnMut(Packet),
    ) {
        let fates = &mut fates[..self.len()];
        let mut indices = indices.peekable();
        let mut packets = Compaction::new(&mut self.packets, 0);
        let mut kept = 0;
        for n in 0..fates.len() {
            if indices.next_if_eq(&n).is_some() {
                sink(packets.remove());
            } else {
                packets.keep();
                fates[kept] = fates[n];
                kept += 1;
            }
        }
    }

    /// Passes `n` free slots at the end to `fill`, which writes packets to them
    /// and returns how many it wrote. Returns that number.
    ///
    /// # Safety
    /// `fill` must have written as many slots as it returns, from the start on.
    #[inline]
    pub(crate) unsafe fn extend_with(
        &mut self,
        n: usize,
        fill: impl FnOnce(&mut [MaybeUninit<Packet>]) -> usize,
    ) -> usize {
        self.reserve(n);
        let len = self.packets.len();
        let added = fill(&mut self.packets.spare_capacity_mut()[..n]);
        // SAFETY: `reserve` made room for `n` packets, and `fill` wrote the
        // first `added` of them.
        unsafe { self.packets.set_len(len + added.min(n)) };
        added
    }

    /// Gets a cached buffer if the batch has none, and makes room for `n` more packets.
    #[inline(never)]
    fn grow(&mut self, n: usize) {
        if self.packets.capacity() == 0
            && let Some(buffer) = pool::cached_buffer()
        {
            *self.packets = buffer;
            if self.packets.capacity() >= n {
                return;
            }
        }
        let n = if self.packets.is_empty() { n.max(BURST) } else { n };
        let _payment = nobody_pays();
        self.packets.reserve(n);
    }
}

/// Number of fates, from the start, that are all `keep`.
#[inline]
pub(crate) fn common_prefix(fates: &[u8], keep: u8) -> usize {
    let all = [keep; 8];
    let words = fates.chunks_exact(8).take_while(|chunk| *chunk == all).count() * 8;
    words + fates[words..].iter().take_while(|&&fate| fate == keep).count()
}

/// A batch during compaction: `kept` packets, a gap of free slots, and the
/// unprocessed packets from `next` to `end`. Its destructor closes the gap,
/// also when the caller panics.
pub(crate) struct Compaction<'b> {
    packets: &'b mut Vec<Packet>,
    kept: usize,
    next: usize,
    end: usize,
}

impl<'b> Compaction<'b> {
    /// Starts behind the first `kept` packets, with an empty gap.
    #[inline]
    fn new(packets: &'b mut Vec<Packet>, kept: usize) -> Self {
        let end = packets.len();
        assert!(kept <= end);
        // SAFETY: 0 is never more than the length. The compaction owns all the
        // packets until its destructor sets the length again.
        unsafe { packets.set_len(0) };
        Compaction { packets, kept, next: kept, end }
    }

    /// The next unprocessed packet, if there is one.
    #[inline]
    fn peek(&mut self) -> Option<&mut Packet> {
        // SAFETY: the slots from `next` to `end` hold packets, which the compaction owns.
        (self.next < self.end).then(|| unsafe { &mut *self.packets.as_mut_ptr().add(self.next) })
    }

    /// Keeps the next packet: moves it before the gap.
    #[inline]
    fn keep(&mut self) {
        debug_assert!(self.next < self.end);
        let first = self.packets.as_mut_ptr();
        // SAFETY: both slots lie in the buffer; `next` holds a packet; `kept` is
        // a free slot of the gap, or the same slot. Afterwards `next` is free.
        unsafe { first.add(self.kept).copy_from(first.add(self.next), 1) };
        self.kept += 1;
        self.next += 1;
    }

    /// Moves the next packet to the end of `batch`.
    #[inline]
    pub(crate) fn move_to(&mut self, batch: &mut Batch) {
        debug_assert!(self.next < self.end);
        batch.reserve(1);
        let len = batch.packets.len();
        // SAFETY: slot `next` holds a packet, and is free afterwards. `reserve` made room for it
        // behind the last packet of the batch, whose length then covers it. The buffers are
        // different ones, because both are borrowed mutably.
        unsafe {
            let from = self.packets.as_ptr().add(self.next);
            batch.packets.as_mut_ptr().add(len).copy_from_nonoverlapping(from, 1);
            batch.packets.set_len(len + 1);
        }
        self.next += 1;
    }

    /// Removes the next packet and returns it.
    #[inline]
    pub(crate) fn remove(&mut self) -> Packet {
        debug_assert!(self.next < self.end);
        // SAFETY: slot `next` holds a packet, and is free afterwards.
        let packet = unsafe { self.packets.as_ptr().add(self.next).read() };
        self.next += 1;
        packet
    }
}

impl Drop for Compaction<'_> {
    #[inline]
    fn drop(&mut self) {
        let rest = self.end - self.next;
        let first = self.packets.as_mut_ptr();
        // SAFETY: the first `kept` slots and the `rest` slots from `next` on
        // hold packets; after the copy they are adjacent, and the length
        // covers exactly them.
        unsafe {
            first.add(self.kept).copy_from(first.add(self.next), rest);
            self.packets.set_len(self.kept + rest);
        }
    }
}

/// The clones of a batch, one batch after the other ([`Batch::clones`]).
#[derive(Debug)]
pub struct Clones<'b> {
    packets: &'b [Packet],
    /// Clones that were counted and not made yet.
    left: u16,
}

impl Iterator for Clones<'_> {
    type Item = Batch;

    #[inline]
    fn next(&mut self) -> Option<Batch> {
        let mut batch = Batch::new();
        self.left.checked_sub(1)?;
        let count = self.packets.len();
        batch.reserve(count);
        self.left -= 1;
        // SAFETY: `reserve` made room for as many packets. Each duplicate is an owner that `clones`
        // has counted, and `left` was lowered for it. The packets are borrowed for as long, so
        // that none has changed its frame since.
        unsafe {
            batch.packets.as_mut_ptr().copy_from_nonoverlapping(self.packets.as_ptr(), count);
            batch.packets.set_len(count);
        }
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.into(), Some(self.left.into()))
    }
}

impl ExactSizeIterator for Clones<'_> {}

impl Drop for Clones<'_> {
    #[inline]
    fn drop(&mut self) {
        // Owners that were counted have to be dropped.
        self.for_each(drop);
    }
}

impl Drop for Batch {
    #[inline]
    fn drop(&mut self) {
        if self.packets.capacity() > 0 {
            // SAFETY: the destructor is the last use of `packets`.
            pool::recycle_batch(unsafe { ManuallyDrop::take(&mut self.packets) });
        }
    }
}

impl Index<usize> for Batch {
    type Output = Packet;
    #[inline]
    fn index(&self, index: usize) -> &Packet {
        &self.packets[index]
    }
}

impl IndexMut<usize> for Batch {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut Packet {
        &mut self.packets[index]
    }
}

impl Extend<Packet> for Batch {
    fn extend<I: IntoIterator<Item = Packet>>(&mut self, packets: I) {
        packets.into_iter().for_each(|packet| self.push(packet));
    }
}

impl FromIterator<Packet> for Batch {
    fn from_iter<I: IntoIterator<Item = Packet>>(packets: I) -> Self {
        let mut batch = Batch::new();
        batch.extend(packets);
        batch
    }
}

impl From<Packet> for Batch {
    #[inline]
    fn from(packet: Packet) -> Self {
        let mut batch = Batch::new();
        batch.push(packet);
        batch
    }
}

impl<'b> IntoIterator for &'b Batch {
    type Item = &'b Packet;
    type IntoIter = std::slice::Iter<'b, Packet>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'b> IntoIterator for &'b mut Batch {
    type Item = &'b mut Packet;
    type IntoIter = std::slice::IterMut<'b, Packet>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl IntoIterator for Batch {
    type Item = Packet;
    type IntoIter = IntoIter;
    fn into_iter(mut self) -> IntoIter {
        self.packets.reverse();
        IntoIter { reversed: self }
    }
}

/// An iterator that owns the packets of a batch, in order.
#[derive(Debug)]
pub struct IntoIter {
    reversed: Batch,
}

impl Iterator for IntoIter {
    type Item = Packet;
    #[inline]
    fn next(&mut self) -> Option<Packet> {
        self.reversed.pop()
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.reversed.len(), Some(self.reversed.len()))
    }
}

impl ExactSizeIterator for IntoIter {}
