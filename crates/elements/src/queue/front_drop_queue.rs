//! `FrontDropQueue`: drops the oldest packets when it is full.

use super::queue_state::{QueueState, fifo_methods};
use castanet_element::prelude::*;

/// Stores packets first in, first out, and drops the oldest ones when it is full.
///
/// Sources do not wait for room. The first packet that is dropped is reported. When a handler
/// lowers the capacity, the oldest packets beyond it are dropped at once (`drops.reset`).
///
/// ```click
/// in -> q :: FrontDropQueue(2) -> u :: Unqueue(ACTIVE false) -> out
/// q[1] -> old
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// > in 1.0.0.3 > 2.0.0.2 udp len 60
/// < old 1.0.0.1 > 2.0.0.2 udp len 60
/// = q.length 2
/// = q.drops 1
/// = q.highwater_length 2
/// ! u.active true
/// < out 1.0.0.2 > 2.0.0.2 udp len 60
/// < out 1.0.0.3 > 2.0.0.2 udp len 60
/// ! q.reset_counts
/// = q.drops 0
/// ! u.active false
/// > in 1.0.0.4 > 2.0.0.2 udp len 60
/// > in 1.0.0.5 > 2.0.0.2 udp len 60
/// ! q.capacity 1
/// = q.drops 0
/// = q.drops.reset 1
/// ! q.reset
/// < old 1.0.0.5 > 2.0.0.2 udp len 60
/// = q.length 0
/// ```
#[derive(Clone, Element)]
#[element(room = "queue", ports = "1/1-2")]
pub struct FrontDropQueue {
    /// Maximum number of packets in the queue.
    #[arg(live, default = 1000)]
    capacity: usize,
    /// An argument of FastClick without effect: whether it is silent that only one worker comes here.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    nouseless: bool,
}

#[derive(Fate)]
pub enum FrontDropQueueExit {
    /// Packets that are pulled.
    Next,
    /// The oldest packets, which make room for new ones. Raise CAPACITY, or look at the rate of the
    /// element that empties the queue.
    #[optional]
    Old,
}

impl Store for FrontDropQueue {
    type Local = QueueState;
    type Fate = FrontDropQueueExit;

    fn enqueue(&self, state: &mut QueueState, mut batch: Batch, cx: &mut Cx) {
        state.packets.append(&mut batch);
        let excess = state.packets.len().saturating_sub(self.capacity);
        if excess > 0 {
            state.overflow(excess, self.capacity, cx);
            state.take(excess, &mut batch);
            cx.emit_batch(FrontDropQueueExit::Old, batch);
        }
        state.update_highwater();
    }

    fifo_methods!(FrontDropQueueExit::Old);

    fn shrink(&self, state: &mut QueueState) {
        let excess = state.packets.len().saturating_sub(self.capacity);
        state.take(excess, &mut Batch::new());
    }
}
