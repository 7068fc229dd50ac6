//! Batches: packets that travel together, in one array.

use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::ops::{Index, IndexMut};

use crate::packet::Packet;
use crate::pool;
use crate::raw::RawPacket;

/// How many packets travel together, unless the user says otherwise.
pub const BURST: usize = 64;

/// Most packets that the engine lets travel together.
pub const MAX_BURST: usize = 256;

/// Packets that travel together.
///
/// An empty batch costs nothing: its buffer comes with the first packet, from
/// those that the thread used before, so that in the steady state nothing is
/// allocated. Dropping a batch drops its packets, all at once.
#[derive(Debug, Default)]
pub struct Batch {
    /// Not dropped by itself: the batch's own destructor does better.
    packets: ManuallyDrop<Vec<Packet>>,
}

impl Batch {
    /// An empty batch.
    #[inline]
    pub const fn new() -> Self {
        Batch { packets: ManuallyDrop::new(Vec::new()) }
    }

    /// How many packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether there are none.
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

    /// Takes the last packet off.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet> {
        self.packets.pop()
    }

    /// The packets in order.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, Packet> {
        self.packets.iter()
    }

    /// The packets in order, to change.
    #[inline]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Packet> {
        self.packets.iter_mut()
    }

    /// The packets.
    #[inline]
    pub fn as_slice(&self) -> &[Packet] {
        &self.packets
    }

    /// The packets, to change.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [Packet] {
        &mut self.packets
    }

    /// Gives the packets up in order, and keeps the buffer.
    #[inline]
    pub fn drain(&mut self) -> std::vec::Drain<'_, Packet> {
        self.packets.drain(..)
    }

    /// Drops all packets, all at once.
    #[inline]
    pub fn clear(&mut self) {
        pool::recycle_all(&mut self.packets);
    }

    /// The packets as words, for a device that sends from their frames.
    #[inline]
    pub fn as_raw(&self) -> &[RawPacket] {
        let packets: &[Packet] = &self.packets;
        // SAFETY: a packet is laid out as its raw form, of which every value
        // may be read.
        unsafe { std::slice::from_raw_parts(packets.as_ptr().cast(), packets.len()) }
    }

    /// Gives out the frames of the first `n` packets, as
    /// [`Packet::into_frame`] does, to a device that already knows them: the
    /// packets are gone, the frames are in use.
    ///
    /// # Panics
    /// If there are not that many.
    ///
    /// # Safety
    /// None of them must be shared: the device may write to the frames, and
    /// give them back to their pool.
    #[inline]
    pub unsafe fn release(&mut self, n: usize) {
        debug_assert!(self.packets[..n].iter().all(|packet| !packet.is_shared()));
        let rest = self.packets[n..].len();
        // SAFETY: the first `n` packets are forgotten, and what lies behind
        // them moves up over them.
        unsafe {
            self.packets.set_len(0);
            if rest > 0 {
                let first = self.packets.as_mut_ptr();
                first.copy_from(first.add(n), rest);
                self.packets.set_len(rest);
            }
        }
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

    /// Takes off the packets from the `at`th on; none if there are fewer.
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
    /// If there are not that many.
    #[inline]
    pub fn swap(&mut self, a: usize, b: usize) {
        self.packets.swap(a, b);
    }

    /// Takes a packet out of the middle; those behind it move up.
    ///
    /// # Panics
    /// If there are not that many.
    pub fn remove(&mut self, index: usize) -> Packet {
        self.packets.remove(index)
    }

    /// Makes room for `n` more packets.
    #[inline]
    pub fn reserve(&mut self, n: usize) {
        if n > self.packets.capacity() - self.packets.len() {
            self.grow(n);
        }
    }

    /// Keeps the packets whose fate is `keep`, in order, and gives the
    /// others to `sink` with their fates, in order.
    ///
    /// # Panics
    /// If there is not exactly one fate a packet.
    #[inline]
    pub fn partition(&mut self, fates: &[u8], keep: u8, mut sink: impl FnMut(u8, Packet)) {
        assert_eq!(fates.len(), self.len(), "one fate a packet");
        let kept = leading(fates, keep);
        if kept == fates.len() {
            return;
        }
        let mut gap = Gap::new(&mut self.packets, kept);
        for &fate in &fates[kept..] {
            if fate == keep {
                gap.keep();
            } else {
                sink(fate, gap.take());
            }
        }
    }

    /// Keeps the packets for which `wanted` says so, in order, and drops the others.
    pub fn retain(&mut self, mut wanted: impl FnMut(&mut Packet) -> bool) {
        let mut gap = Gap::new(&mut self.packets, 0);
        while let Some(packet) = gap.peek() {
            match wanted(packet) {
                true => gap.keep(),
                false => drop(gap.take()),
            }
        }
    }

    /// Gives the packets at `places`, which must be in order, to `sink`, and
    /// takes their fates out too, so that those of the others stay beside them.
    ///
    /// # Panics
    /// If there are fewer fates than packets.
    pub fn take_out(
        &mut self,
        places: impl Iterator<Item = usize>,
        fates: &mut [u8],
        mut sink: impl FnMut(Packet),
    ) {
        let fates = &mut fates[..self.len()];
        let mut gone = places.peekable();
        let mut gap = Gap::new(&mut self.packets, 0);
        let mut kept = 0;
        for n in 0..fates.len() {
            if gone.next_if_eq(&n).is_some() {
                sink(gap.take());
            } else {
                gap.keep();
                fates[kept] = fates[n];
                kept += 1;
            }
        }
    }

    /// Lets `fill` write up to `n` packets at the end; it says how many.
    ///
    /// # Safety
    /// `fill` must have written as many slots as it says, from the start on.
    #[inline]
    pub(crate) unsafe fn extend_with(
        &mut self,
        n: usize,
        fill: impl FnOnce(&mut [MaybeUninit<Packet>]) -> usize,
    ) -> usize {
        self.reserve(n);
        let len = self.packets.len();
        let added = fill(&mut self.packets.spare_capacity_mut()[..n]);
        // SAFETY: there was room for `n`, and that many have been written.
        unsafe { self.packets.set_len(len + added.min(n)) };
        added
    }

    #[inline(never)]
    fn grow(&mut self, n: usize) {
        if self.packets.capacity() == 0
            && let Some(used) = pool::used_buffer()
        {
            *self.packets = used;
            if self.packets.capacity() >= n {
                return;
            }
        }
        let n = if self.packets.is_empty() { n.max(BURST) } else { n };
        self.packets.reserve(n);
    }
}

/// How many fates from the start are `keep`.
#[inline]
fn leading(fates: &[u8], keep: u8) -> usize {
    let all = [keep; 8];
    let words = fates.chunks_exact(8).take_while(|chunk| *chunk == all).count() * 8;
    words + fates[words..].iter().take_while(|&&fate| fate == keep).count()
}

/// A batch that is being compacted: `kept` packets, a gap, the packets from
/// `next` to `end`. Closes the gap when dropped, also by a panic.
struct Gap<'b> {
    packets: &'b mut Vec<Packet>,
    kept: usize,
    next: usize,
    end: usize,
}

impl<'b> Gap<'b> {
    /// Starts after the first `kept` packets, with an empty gap.
    #[inline]
    fn new(packets: &'b mut Vec<Packet>, kept: usize) -> Self {
        let end = packets.len();
        assert!(kept <= end);
        // SAFETY: no more than there are; the gap owns the rest until it is dropped.
        unsafe { packets.set_len(0) };
        Gap { packets, kept, next: kept, end }
    }

    /// The next packet behind the gap, if there is one.
    #[inline]
    fn peek(&mut self) -> Option<&mut Packet> {
        // SAFETY: what lies from `next` to `end` are packets, which the gap owns.
        (self.next < self.end).then(|| unsafe { &mut *self.packets.as_mut_ptr().add(self.next) })
    }

    /// Moves the next packet before the gap.
    #[inline]
    fn keep(&mut self) {
        debug_assert!(self.next < self.end);
        let first = self.packets.as_mut_ptr();
        // SAFETY: both in the buffer, `next` holds a packet, `kept` is in the
        // gap or the same; afterwards `next` belongs to the gap.
        unsafe { first.add(self.kept).copy_from(first.add(self.next), 1) };
        self.kept += 1;
        self.next += 1;
    }

    /// Takes the next packet out.
    #[inline]
    fn take(&mut self) -> Packet {
        debug_assert!(self.next < self.end);
        // SAFETY: `next` holds a packet, and belongs to the gap afterwards.
        let packet = unsafe { self.packets.as_ptr().add(self.next).read() };
        self.next += 1;
        packet
    }
}

impl Drop for Gap<'_> {
    #[inline]
    fn drop(&mut self) {
        let rest = self.end - self.next;
        let first = self.packets.as_mut_ptr();
        // SAFETY: the first `kept` and the `rest` hold packets, and lie
        // together once the gap between them is closed.
        unsafe {
            first.add(self.kept).copy_from(first.add(self.next), rest);
            self.packets.set_len(self.kept + rest);
        }
    }
}

impl Drop for Batch {
    #[inline]
    fn drop(&mut self) {
        if self.packets.capacity() > 0 {
            // SAFETY: the batch is not used after this.
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
    fn from(packet: Packet) -> Self {
        Batch::from_iter([packet])
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

/// Gives the packets of a batch up, in order.
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
