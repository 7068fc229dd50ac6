//! `CPUQueue`: stores the packets of each worker in its own queue.

use castanet_element::packet::PacketQueue;
use castanet_element::prelude::*;

/// Stores packets in one FIFO queue per worker that pushes them.
///
/// A pull takes packets from the queues of the workers in turn, whichever output is pulled. A
/// packet that finds the queue of its worker full is dropped. When a handler lowers the capacity,
/// the youngest packets of each worker beyond it are dropped at once (`drops.reset`).
///
/// ```click
/// in -> Pipeliner -> q :: CPUQueue(2) -> u :: Unqueue(ACTIVE false) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// > in 1.0.0.3 > 2.0.0.2 udp
/// = q.capacity 2
/// = q.length 2
/// = q.drops 1
/// = q.drops.full 1
/// ! q.capacity 1
/// = q.drops.reset 1
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "threads", ports = "1/1-", processing = "h/l")]
pub struct CPUQueue {
    /// Maximum number of packets per worker.
    #[arg(live, default = 128, range = 1..)]
    capacity: usize,
}

#[derive(Fate)]
pub enum CPUQueueExit {
    /// Packets that are pulled.
    Next,
    /// Packets that find the queue of their worker full. Raise CAPACITY, or look at the rate of the
    /// element that empties the queue.
    #[drop]
    Full,
}

/// The queues of the workers, and the counter of drops.
#[derive(Default, Local)]
#[local(methods)]
pub struct CPUQueueState {
    queues: Vec<PacketQueue>,
    /// Number of the worker from whose queue packets were pulled last.
    next: usize,
    /// Number of packets that were dropped because the queue of their worker was full.
    #[read]
    #[portable]
    drops: u64,
}

#[handlers]
impl CPUQueueState {
    /// Number of packets in all queues.
    #[read]
    fn length(&self) -> usize {
        self.queues.iter().map(PacketQueue::len).sum()
    }
}

impl Store for CPUQueue {
    type Local = CPUQueueState;
    type Fate = CPUQueueExit;

    fn enqueue(&self, state: &mut CPUQueueState, mut batch: Batch, cx: &mut Cx) {
        let worker = cx.worker();
        if state.queues.len() <= worker {
            state.queues.resize_with(worker + 1, PacketQueue::default);
        }
        let queue = &mut state.queues[worker];
        let excess = batch.split_off(self.capacity.saturating_sub(queue.len()));
        queue.append(&mut batch);
        if !excess.is_empty() {
            state.drops += excess.len() as u64;
            cx.emit_batch(CPUQueueExit::Full, excess);
        }
    }

    fn dequeue(&self, state: &mut CPUQueueState, n: usize, into: &mut Batch, _: &mut Cx) {
        for _ in 0..state.queues.len() {
            state.next = (state.next + 1) % state.queues.len();
            let queue = &mut state.queues[state.next];
            queue.take(n - into.len(), into);
            if into.len() == n {
                return;
            }
        }
    }

    fn held(&self, state: &CPUQueueState) -> usize {
        state.length()
    }

    fn shrink(&self, state: &mut CPUQueueState) {
        state.queues.iter_mut().for_each(|queue| queue.truncate(self.capacity));
    }
}
