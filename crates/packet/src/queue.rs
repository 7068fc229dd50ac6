//! Queues of packets: descriptors move in and out by the batch.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;

use crate::batch::{Batch, MAX_BURST};
use crate::packet::Packet;
use crate::raw::RawPacket;

/// A double-ended queue of packets, which elements use to store them.
///
/// A batch that comes into an empty queue stays as it is, and leaves as it is if as many packets are
/// taken; those that come after it join it, as long as all together are not more than were wanted last. Any other
/// moves in by one copy of its descriptors, and out by one or two. A
/// `VecDeque<Packet>` moves packets one by one, which takes eighty instructions
/// for each instead of ten.
#[derive(Default)]
pub struct PacketQueue {
    /// The packets before all others.
    front: Batch,
    /// Packets that were wanted last, at most [`MAX_BURST`].
    wanted: usize,
    /// Each is a packet that the queue owns.
    packets: VecDeque<RawPacket>,
}

// SAFETY: the queue owns its packets, which may be sent to another thread.
unsafe impl Send for PacketQueue {}
// SAFETY: `&PacketQueue` gives access to `&Packet` only.
unsafe impl Sync for PacketQueue {}

impl PacketQueue {
    /// Number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.front.len() + self.packets.len()
    }

    /// Whether the queue has no packets.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves the packets of `batch` to the end.
    #[inline]
    pub fn append(&mut self, batch: &mut Batch) {
        if self.is_empty() {
            return std::mem::swap(&mut self.front, batch);
        }
        if self.packets.is_empty() && self.front.len() + batch.len() <= self.wanted {
            return self.front.append(batch);
        }
        // Before the descriptors are copied: an allocation may fail.
        self.packets.reserve(batch.len());
        self.packets.extend(batch.as_raw());
        batch.forget_all();
    }

    /// Moves up to `n` packets from the front to the end of `batch`, in order.
    #[inline]
    pub fn take(&mut self, n: usize, batch: &mut Batch) {
        self.wanted = n.min(MAX_BURST);
        let whole = self.front.len();
        if n < whole {
            self.dissolve_front();
        } else if batch.is_empty() {
            std::mem::swap(&mut self.front, batch);
        } else {
            batch.append(&mut self.front);
        }
        let n = if n < whole { n } else { n - whole };
        if n > 0 && !self.packets.is_empty() {
            self.copy_out(n, batch);
        }
    }

    /// Moves up to `n` packets behind the front to the end of `batch`.
    fn copy_out(&mut self, n: usize, batch: &mut Batch) {
        let n = n.min(self.packets.len());
        let (first, second) = self.packets.as_slices();
        let first = &first[..n.min(first.len())];
        let second = &second[..n - first.len()];
        // SAFETY: the queue owns these packets, which are written to as many slots, and
        // forgotten by the queue before anything else can happen.
        unsafe {
            batch.extend_with(n, |slots| {
                let slots = slots.as_mut_ptr().cast::<RawPacket>();
                slots.copy_from_nonoverlapping(first.as_ptr(), first.len());
                slots.add(first.len()).copy_from_nonoverlapping(second.as_ptr(), second.len());
                n
            });
        }
        self.packets.drain(..n);
    }

    /// Moves the packets of the front to the others.
    #[cold]
    fn dissolve_front(&mut self) {
        self.packets.reserve(self.front.len());
        let front = self.front.as_raw().iter().rev();
        front.for_each(|&raw| self.packets.push_front(raw));
        self.front.forget_all();
    }

    /// Puts a packet before all others.
    pub fn push_front(&mut self, packet: Packet) {
        self.packets.reserve(1 + self.front.len());
        self.dissolve_front();
        self.packets.push_front(RawPacket::of(&ManuallyDrop::new(packet)));
    }

    /// Removes the last packet and returns it.
    pub fn pop_back(&mut self) -> Option<Packet> {
        let Some(raw) = self.packets.pop_back() else { return self.front.pop() };
        // SAFETY: the words are those of a packet that the queue owned until now.
        Some(unsafe { raw.into_packet() })
    }

    /// Drops the packets beyond the first `len`.
    pub fn truncate(&mut self, len: usize) {
        while self.len() > len {
            drop(self.pop_back());
        }
    }

    /// The packets, from the front on.
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.front.iter().chain(self.packets.iter().map(RawPacket::as_packet))
    }

    /// Drops all packets.
    pub fn clear(&mut self) {
        let mut batch = Batch::new();
        while !self.is_empty() {
            self.take(MAX_BURST, &mut batch);
            batch.clear();
        }
    }
}

impl std::fmt::Debug for PacketQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacketQueue").field("len", &self.len()).finish()
    }
}

impl Drop for PacketQueue {
    fn drop(&mut self) {
        self.clear();
    }
}
