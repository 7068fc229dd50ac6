//! `Queue`: stores packets first in, first out.

use super::queue_state::{QueueState, fifo_methods};
use castanet_element::prelude::*;

/// Stores packets in a FIFO queue until an element pulls them.
///
/// Any number of workers may push and pull; the engine admits one worker at a time, for one burst.
/// Sources such as `InfiniteSource` wait while the queue is full. Packets from other elements that
/// find the queue full leave by output 1, or are dropped if it is not connected; the first such
/// packet is reported. When a handler lowers the capacity, the youngest packets beyond it are
/// dropped at once (`drops.reset`). With BLOCKING, the queue drops none, and no worker waits: sources wait
/// at CAPACITY, and packets that are on their way stay beyond it.
///
/// ```click
/// in -> q :: Queue(2) -> u :: Unqueue(ACTIVE false) -> out
/// q[1] -> full
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// > in 1.0.0.3 > 2.0.0.2 udp len 60
/// < full 1.0.0.3 > 2.0.0.2 udp len 60
/// = q.length 2
/// = q.capacity 2
/// = q.drops 1
/// ! q.reset
/// < full 1.0.0.1 > 2.0.0.2 udp len 60
/// < full 1.0.0.2 > 2.0.0.2 udp len 60
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.2 > 2.0.0.2 udp len 60
/// = q.length 0
/// = q.highwater_length 2
/// ! q.reset_counts
/// = q.highwater_length 0
/// = q.drops 0
/// ```
///
/// ```click
/// in -> q :: Queue -> u :: Unqueue(ACTIVE false) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// > in 1.0.0.3 > 2.0.0.2 udp len 60
/// ! q.capacity 1
/// = q.length 1
/// = q.drops 0
/// = q.drops.reset 2
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// ! u.active false
/// > in 1.0.0.4 > 2.0.0.2 udp len 60
/// > in 1.0.0.5 > 2.0.0.2 udp len 60
/// ! q.reset
/// = q.length 0
/// ~ q :: Queue: overflow
/// = q.drops.reset 2
/// = q.drops.full 2
/// ```
///
/// ```click
/// in -> q :: Queue(1, BLOCKING true) -> u :: Unqueue(ACTIVE false) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.2 > 2.0.0.2 udp len 60
/// = q.drops 0
/// ```
#[derive(Clone, Element)]
#[element(
    room = "queue",
    ports = "1/1-2",
    alias = "FullNoteQueue",
    alias = "QuickNoteQueue",
    alias = "ThreadSafeQueue",
    alias = "MSQueue"
)]
pub struct Queue {
    /// Maximum number of packets in the queue.
    #[arg(live, default = 1000)]
    capacity: usize,
    /// An argument of FastClick without effect: whether it is silent that only one worker comes here.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    nouseless: bool,
    /// Whether packets that find the queue full stay in it, too, for as long as there is memory.
    #[arg(keyword, default = false)]
    blocking: bool,
}

#[derive(Fate)]
pub enum QueueExit {
    /// Packets that are pulled.
    Next,
    /// Packets that find the queue full, or that `reset` takes out. Raise CAPACITY, or look at the rate of the element that
    /// empties the queue.
    #[optional]
    Full,
}

impl Store for Queue {
    type Local = QueueState;
    type Fate = QueueExit;
    const NOTIFIES: bool = true;

    fn enqueue(&self, state: &mut QueueState, batch: Batch, cx: &mut Cx) {
        let capacity = if self.blocking { usize::MAX } else { self.capacity };
        state.put(batch, capacity, QueueExit::Full, cx);
    }

    fifo_methods!(QueueExit::Full);

    fn shrink(&self, state: &mut QueueState) {
        if !self.blocking {
            state.packets.truncate(self.capacity);
        }
    }
}
