//! What the queues keep, and how they hand it out.

use castanet_engine::prelude::*;
use std::collections::VecDeque;

/// The packets kept, and what became of others.
#[derive(Default, Local)]
#[local(methods)]
pub struct Kept {
    pub(super) packets: VecDeque<Packet>,
    /// The most packets that were ever kept at once.
    #[read]
    highwater_length: usize,
    /// Packets that found no room, or made room for younger ones.
    #[read]
    pub(super) drops: u64,
}

#[handlers]
impl Kept {
    /// How many packets are kept.
    #[read]
    pub(super) fn length(&self) -> usize {
        self.packets.len()
    }
    /// Throws away all packets kept.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.packets.clear();
        Ok(())
    }
    /// Counts drops and the highest length from now on.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        (self.drops, self.highwater_length) = (0, self.packets.len());
        Ok(())
    }
}

/// How a `Store` of [`Kept`] with a `capacity` hands packets out, and how many it keeps.
macro_rules! oldest_first {
    () => {
        fn take(&self, kept: &mut Kept, n: usize, into: &mut Batch, _: &mut Cx) {
            kept.take(n, into);
        }
        fn held(&self, kept: &Kept) -> usize {
            kept.length()
        }
        fn room(&self, kept: &Kept) -> usize {
            kept.room(self.capacity)
        }
    };
}
pub(super) use oldest_first;

impl Kept {
    /// Puts packets last, as far as there is room; the others go where `full` says.
    pub(super) fn put(&mut self, mut batch: Batch, capacity: usize, full: impl Fate, cx: &mut Cx) {
        let excess = batch.split_off(self.room(capacity));
        self.packets.extend(batch.drain());
        self.settle();
        if !excess.is_empty() {
            self.overflow(excess.len(), capacity, cx);
            cx.emit_batch(full, excess);
        }
    }

    /// How many more packets there is room for.
    pub(super) fn room(&self, capacity: usize) -> usize {
        capacity.saturating_sub(self.packets.len())
    }

    /// Remembers how many there are, once those are gone that find no room.
    pub(super) fn settle(&mut self) {
        self.highwater_length = self.highwater_length.max(self.packets.len());
    }

    /// Counts packets that find no room, or make it; says so when they are the first.
    #[cold]
    pub(super) fn overflow(&mut self, count: usize, capacity: usize, cx: &mut Cx) {
        if self.drops == 0 && capacity > 0 {
            cx.report("overflow");
        }
        self.drops += count as u64;
    }

    /// Takes up to `n` packets, the oldest first.
    pub(super) fn take(&mut self, n: usize, into: &mut Batch) {
        let n = n.min(self.packets.len());
        into.extend(self.packets.drain(..n));
    }
}
