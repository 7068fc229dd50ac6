//! `SimpleQueue`: stores packets first in, first out, and lets no source wait.

use super::queue_state::{QueueState, fifo_methods};
use castanet_element::prelude::*;

/// Stores packets in a FIFO queue; sources do not wait while it is full.
///
/// That is its only difference from `Queue`. Packets that find it full leave by output 1, or are
/// dropped if it is not connected; the first such packet is reported. When a handler lowers the
/// capacity, the youngest packets beyond it are dropped at once (`drops.reset`).
///
/// ```click
/// InfiniteSource(LIMIT 30) -> c :: Counter -> q :: NotifierQueue(4) -> Idle
/// + 1ms
/// ~ q :: NotifierQueue: overflow
/// = c.count 30
/// = q.length 4
/// = q.drops 26
/// ```
///
/// ```click
/// in -> q :: SimpleQueue(2) -> u :: Unqueue(ACTIVE false) -> out
/// q[1] -> full
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// > in 1.0.0.3 > 2.0.0.2 udp
/// < full 1.0.0.3 > 2.0.0.2 udp
/// ~ q :: SimpleQueue: overflow
/// = q.capacity 2
/// = q.highwater_length 2
/// ! q.capacity 1
/// = q.length 1
/// = q.drops 1
/// = q.drops.reset 1
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ! u.active false
/// > in 1.0.0.4 > 2.0.0.2 udp
/// ! q.reset
/// < full 1.0.0.4 > 2.0.0.2 udp
/// ! q.reset_counts
/// = q.drops 0
/// = q.length 0
/// ```
#[derive(Clone, Element)]
#[element(room = "queue", ports = "1/1-2", alias = "NotifierQueue")]
pub struct SimpleQueue {
    /// Maximum number of packets in the queue.
    #[arg(live, default = 1000)]
    capacity: usize,
    /// An argument of FastClick without effect: whether it is silent that only one worker comes here.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    nouseless: bool,
}

#[derive(Fate)]
pub enum SimpleQueueExit {
    /// Packets that are pulled.
    Next,
    /// Packets that find the queue full, or that `reset` takes out. Raise CAPACITY, or look at the rate of the element that
    /// empties the queue.
    #[optional]
    Full,
}

impl Store for SimpleQueue {
    type Local = QueueState;
    type Fate = SimpleQueueExit;

    fn enqueue(&self, state: &mut QueueState, batch: Batch, cx: &mut Cx) {
        state.put(batch, self.capacity, SimpleQueueExit::Full, cx);
    }

    fifo_methods!(SimpleQueueExit::Full);

    fn shrink(&self, state: &mut QueueState) {
        state.packets.truncate(self.capacity);
    }
}
