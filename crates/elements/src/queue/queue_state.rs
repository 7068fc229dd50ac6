//! State of the queue elements: the stored packets and their counters.

use castanet_element::packet::PacketQueue;
use castanet_element::portable_state::Highest;
use castanet_element::prelude::*;

const HIGHWATER: Metric = Metric::gauge(
    "queue_highwater_packets",
    "The highest number of packets that were in the queue at the same time.",
);

/// The stored packets, and the counters of the queue.
#[derive(Default, Local)]
#[local(methods)]
pub struct QueueState {
    #[portable]
    pub(super) packets: PacketQueue,
    /// The highest number of packets that were in the queue at the same time.
    #[read]
    #[metric(HIGHWATER)]
    #[portable]
    highwater_length: Highest,
    /// Packets that were dropped because the queue was full.
    #[read]
    #[portable]
    pub(super) drops: u64,
}

#[handlers]
impl QueueState {
    /// Number of packets in the queue.
    #[read]
    pub(super) fn length(&self) -> usize {
        self.packets.len()
    }
    /// Drops all packets in the queue.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.packets.clear();
        Ok(())
    }
    /// Resets `drops` to 0 and `highwater_length` to the current length.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        (self.drops, self.highwater_length) = (0, Highest(self.packets.len() as u64));
        Ok(())
    }
}

/// The methods `take`, `held` and `room` of a first in, first out `Store` whose element has a field
/// `capacity` and whose state is a [`QueueState`].
macro_rules! fifo_methods {
    () => {
        fn dequeue(&self, state: &mut QueueState, n: usize, into: &mut Batch, _: &mut Cx) {
            state.take(n, into);
        }
        fn held(&self, state: &QueueState) -> usize {
            state.length()
        }
        fn room(&self, state: &QueueState) -> usize {
            state.room(self.capacity)
        }
    };
}
pub(super) use fifo_methods;

impl QueueState {
    /// Appends the packets for which there is room, and emits the others at the exit `full`.
    pub(super) fn put(
        &mut self,
        mut batch: Batch,
        capacity: usize,
        full_exit: impl Fate,
        cx: &mut Cx,
    ) {
        let excess = batch.split_off(self.room(capacity));
        self.packets.append(&mut batch);
        self.update_highwater();
        if !excess.is_empty() {
            self.overflow(excess.len(), capacity, cx);
            cx.emit_batch(full_exit, excess);
        }
    }

    /// Number of packets that still fit.
    pub(super) fn room(&self, capacity: usize) -> usize {
        capacity.saturating_sub(self.packets.len())
    }

    /// Updates the highest length. The caller has removed the packets in excess of the capacity.
    pub(super) fn update_highwater(&mut self) {
        self.highwater_length.raise(self.packets.len());
    }

    /// Counts dropped packets, and reports the first drop.
    #[cold]
    pub(super) fn overflow(&mut self, count: usize, capacity: usize, cx: &mut Cx) {
        if self.drops == 0 && capacity > 0 {
            cx.report("overflow");
        }
        self.drops += count as u64;
    }

    /// Moves up to `n` packets to `into`, the oldest first.
    pub(super) fn take(&mut self, n: usize, into: &mut Batch) {
        self.packets.take(n, into);
    }
}
