//! `MixedQueue`: queues packets first in first out, or last in first out, by input.

use super::queue_state::{QueueState, fifo_methods};
use castanet_element::prelude::*;

/// Stores packets in one queue: input 0 appends at the tail, input 1 inserts at the head.
///
/// When the queue is full, a packet of input 0 is dropped, and a packet of input 1 replaces the
/// packet at the tail. The first packet that is dropped is reported; sources do not wait for room.
/// When a handler lowers the capacity, the packets at the tail beyond it are dropped at once
/// (`drops.reset`).
///
/// ```click
/// in -> q :: MixedQueue(3) -> u :: Unqueue(ACTIVE false) -> out
/// urgent -> [1] q;  q[1] -> full
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// > urgent 1.0.0.3 > 2.0.0.2 udp
/// > in 1.0.0.4 > 2.0.0.2 udp
/// < full 1.0.0.4 > 2.0.0.2 udp
/// > urgent 1.0.0.5 > 2.0.0.2 udp
/// < full 1.0.0.2 > 2.0.0.2 udp
/// = q.length 3
/// = q.highwater_length 3
/// = q.capacity 3
/// = q.drops 2
/// ! u.active true
/// < out 1.0.0.5 > 2.0.0.2 udp
/// < out 1.0.0.3 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ! q.reset_counts
/// = q.drops 0
/// ! u.active false
/// > urgent 1.0.0.6 > 2.0.0.2 udp
/// > in 1.0.0.7 > 2.0.0.2 udp
/// ! q.capacity 1
/// = q.length 1
/// = q.drops 0
/// = q.drops.reset 1
/// ! q.reset
/// < full 1.0.0.6 > 2.0.0.2 udp
/// = q.length 0
/// ```
#[derive(Clone, Element)]
#[element(room = "queue", ports = "2/1-2", processing = "h/lh")]
pub struct MixedQueue {
    /// Maximum number of packets in the queue.
    #[arg(live, default = 1000)]
    capacity: usize,
    /// An argument of FastClick without effect: whether it is silent that only one worker comes here.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    nouseless: bool,
}

#[derive(Fate)]
pub enum MixedQueueExit {
    /// Packets that are pulled.
    Next,
    /// Packets of input 0 that find the queue full, and packets that a packet of input 1 replaces.
    /// Raise CAPACITY, or look at the rate of the element that empties the queue.
    #[optional]
    Full,
}

impl Store for MixedQueue {
    type Local = QueueState;
    type Fate = MixedQueueExit;

    fn enqueue(&self, state: &mut QueueState, batch: Batch, cx: &mut Cx) {
        state.put(batch, self.capacity, MixedQueueExit::Full, cx);
    }

    fn enqueue_at(&self, state: &mut QueueState, port: usize, batch: Batch, cx: &mut Cx) {
        if port == 0 {
            return self.enqueue(state, batch, cx);
        }
        for packet in batch {
            state.packets.push_front(packet);
            if state.packets.len() > self.capacity
                && let Some(last) = state.packets.pop_back()
            {
                state.overflow(1, self.capacity, cx);
                cx.emit(MixedQueueExit::Full, last);
            }
            state.update_highwater();
        }
    }

    fifo_methods!(MixedQueueExit::Full);

    fn shrink(&self, state: &mut QueueState) {
        state.packets.truncate(self.capacity);
    }
}
