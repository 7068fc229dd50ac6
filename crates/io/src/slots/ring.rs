//! The two ends of a ring of slots. The peer may write anything at any time: each word is read once
//! into a private copy, which is checked.

use super::layout::SlotDescriptor;
use crate::sys::shared_slots::{RingMemory, RingWord};
use castanet_packet::{Batch, Packet, Pool};
use std::sync::atomic::{Ordering, fence};

/// Number of slots that the processor fetches ahead.
const AHEAD: u32 = 4;

/// The peer has moved its end of a ring past this one: the ring is of no use any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RingFault;

/// The packets that a peer has lost by slots that it filled wrongly.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct SlotErrors {
    /// The length is zero or more than a slot or a frame holds.
    pub(crate) length: u64,
    /// The packet type is none.
    pub(crate) kind: u64,
}

impl SlotErrors {
    pub(crate) fn total(self) -> usize {
        (self.length + self.kind) as usize
    }
}

/// The end that fills slots.
pub(crate) struct Producer {
    ring: RingMemory,
    /// Number of packets published.
    tail: u32,
    /// The peer's head when it was last read.
    head: u32,
}

/// The end that empties slots.
pub(crate) struct Consumer {
    ring: RingMemory,
    /// Number of packets taken.
    head: u32,
    /// The peer's tail when it was last read.
    tail: u32,
}

/// The result of putting packets into a ring.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct SendCount {
    /// Packets that are in slots now, and their bytes.
    pub(crate) sent: usize,
    pub(crate) bytes: u64,
    /// Packets that are empty or longer than a slot.
    pub(crate) refused: usize,
    /// Whether the peer sleeps and must be woken.
    pub(crate) must_wake: bool,
}

/// The result of taking packets out of a ring.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct ReceiveCount {
    /// Packets added to the batch, and their bytes.
    pub(crate) received: usize,
    pub(crate) bytes: u64,
    /// Packets for which the pool had no frame.
    pub(crate) no_frame: usize,
    pub(crate) errors: SlotErrors,
    /// Whether the peer sleeps until there is room and must be woken.
    pub(crate) must_wake: bool,
}

impl Producer {
    /// The end of a ring that is new.
    pub(super) fn new(ring: RingMemory) -> Producer {
        Producer { ring, tail: 0, head: 0 }
    }

    /// Number of packets that the peer has not taken yet, as far as it tells the truth.
    pub(super) fn waiting(&self) -> Result<u32, RingFault> {
        let head = self.ring.word(RingWord::Head).load(Ordering::Acquire);
        let waiting = self.tail.wrapping_sub(head);
        if waiting <= self.ring.slots() { Ok(waiting) } else { Err(RingFault) }
    }

    /// Puts packets from the front of a slice into slots, as many as there is room for, and publishes
    /// them at once. Skips packets that are empty or too long.
    pub(super) fn send(&mut self, packets: &[Packet]) -> Result<SendCount, RingFault> {
        let slots = self.ring.slots();
        let mut room = slots - self.tail.wrapping_sub(self.head);
        if (room as usize) < packets.len() {
            room = slots - self.waiting()?;
            self.head = self.tail.wrapping_add(room).wrapping_sub(slots);
        }
        let (mut count, mut tail) = (SendCount::default(), self.tail);
        for packet in packets {
            if count.sent == room as usize {
                break;
            }
            let words = SlotDescriptor::of(packet).words();
            if !packet.is_empty() && self.ring.write(tail, words, packet.bytes()) {
                tail = tail.wrapping_add(1);
                count.sent += 1;
                count.bytes += packet.len() as u64;
            } else {
                count.refused += 1;
            }
        }
        if count.sent > 0 {
            self.tail = tail;
            self.ring.word(RingWord::Tail).store(tail, Ordering::Release);
            count.must_wake = wakes(&self.ring, RingWord::ConsumerSleeps);
        }
        Ok(count)
    }
}

impl Consumer {
    /// The end of a ring that is new.
    pub(super) fn new(ring: RingMemory) -> Consumer {
        Consumer { ring, head: 0, tail: 0 }
    }

    /// Number of packets in the ring.
    fn available(&mut self) -> Result<u32, RingFault> {
        if self.tail == self.head {
            self.tail = self.ring.word(RingWord::Tail).load(Ordering::Acquire);
        }
        let available = self.tail.wrapping_sub(self.head);
        if available <= self.ring.slots() { Ok(available) } else { Err(RingFault) }
    }

    /// Takes up to `max` packets out of the ring and adds those that are well formed to `batch`.
    pub(super) fn receive(
        &mut self,
        pool: &Pool,
        batch: &mut Batch,
        max: usize,
    ) -> Result<ReceiveCount, RingFault> {
        let n = self.available()?.min(u32::try_from(max).unwrap_or(u32::MAX));
        let mut count = ReceiveCount::default();
        if n == 0 {
            return Ok(count);
        }
        let before = batch.len();
        let frames = pool.alloc_batch(n as usize, batch);
        let capacity = self.ring.capacity().min(pool.data_capacity());
        let mut empty = batch.as_mut_slice()[before..].iter_mut();
        for number in 0..n {
            let at = self.head.wrapping_add(number);
            self.ring.prefetch(at.wrapping_add(AHEAD));
            let descriptor = SlotDescriptor::from_words(self.ring.descriptor(at));
            let len = descriptor.len as usize;
            if len == 0 || len > capacity {
                count.errors.length += 1;
            } else if descriptor.has_unknown_kind() {
                count.errors.kind += 1;
            } else if let Some(packet) = empty.next() {
                // A new packet has room.
                self.ring.read(at, len, packet);
                descriptor.annotate(packet);
                count.received += 1;
                count.bytes += len as u64;
            }
        }
        // Frames of slots with errors go back.
        batch.truncate(before + count.received);
        count.no_frame = (n as usize - count.errors.total()).saturating_sub(frames);
        self.head = self.head.wrapping_add(n);
        self.ring.word(RingWord::Head).store(self.head, Ordering::Release);
        count.must_wake = wakes(&self.ring, RingWord::ProducerSleeps);
        Ok(count)
    }

    /// Has the peer ring when it publishes packets.
    pub(super) fn sleep(&self) {
        self.ring.word(RingWord::ConsumerSleeps).store(1, Ordering::Relaxed);
    }

    /// Says that the consumer is about to sleep; returns whether it may, which it may not if packets
    /// have come in between.
    pub(super) fn may_sleep(&mut self) -> bool {
        self.sleep();
        // The peer publishes and then reads the flag; here the flag is set and then the tail read:
        // one of the two sees the other's write.
        fence(Ordering::SeqCst);
        let is_empty = self.available() == Ok(0);
        if !is_empty {
            self.ring.word(RingWord::ConsumerSleeps).store(0, Ordering::Relaxed);
        }
        is_empty
    }
}

/// Whether the peer sleeps; takes its flag back, so that it is woken once.
#[inline]
fn wakes(ring: &RingMemory, flag: RingWord) -> bool {
    fence(Ordering::SeqCst);
    let flag = ring.word(flag);
    let sleeps = flag.load(Ordering::Relaxed) != 0;
    if sleeps {
        flag.store(0, Ordering::Relaxed);
    }
    sleeps
}
