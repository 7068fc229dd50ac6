//! State of the queue elements: the stored packets and their counters.

use castanet_element::packet::{BURST, PacketQueue};
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
    /// Packets that `reset` has taken out, on their way to an output.
    leaving: PacketQueue,
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
    /// Sends all packets in the queue to output 1, or drops them if it is not connected.
    #[write(reset, wakes)]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        let mut batch = Batch::new();
        self.packets.take(self.packets.len(), &mut batch);
        self.leaving.append(&mut batch);
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
    ($full_exit:expr) => {
        crate::queue::queue_state::reset_methods!($full_exit);
        fn dequeue(&self, state: &mut QueueState, n: usize, into: &mut Batch, _: &mut Cx) {
            state.take(n, into);
        }
        fn room(&self, state: &QueueState) -> usize {
            state.room(self.capacity)
        }
    };
}
pub(super) use fifo_methods;

/// The methods `held` and `run_timer` of a `Store` whose state is a [`QueueState`]: packets that `reset`
/// takes out leave by the exit of packets that find it full.
macro_rules! reset_methods {
    ($full_exit:expr) => {
        fn held(&self, state: &QueueState) -> usize {
            state.held()
        }
        fn run_timer(&self, state: &mut QueueState, cx: &mut Cx) {
            state.emit_leaving($full_exit, cx);
        }
    };
}
pub(super) use reset_methods;

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

    /// Number of packets in the queue and on their way out of it.
    pub(super) fn held(&self) -> usize {
        self.packets.len() + self.leaving.len()
    }

    /// Emits the packets that `reset` has taken out.
    pub(super) fn emit_leaving<F: Fate + Copy>(&mut self, exit: F, cx: &mut Cx) {
        while !self.leaving.is_empty() {
            let mut batch = Batch::new();
            self.leaving.take(BURST, &mut batch);
            cx.emit_batch(exit, batch);
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
