//! `CPUQueue`: stores the packets of each worker in its own queue.

use castanet_element::packet::PacketQueue;
use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter};
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
#[portable(queues)]
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

/// The packets, by the worker that has queued them.
impl PortableState for CPUQueueState {
    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        const PART: usize = 256;
        let first = usize::try_from(from).unwrap_or(usize::MAX);
        let queued = self
            .queues
            .iter()
            .zip(0u8..)
            .flat_map(|(queue, worker)| queue.iter().map(move |packet| (worker, packet)));
        for ((worker, packet), at) in queued.skip(first).take(PART).zip(from..) {
            to.write_packet(&(worker, at.to_be_bytes()), packet);
        }
        let end = first.saturating_add(PART);
        (end < self.length()).then_some(end as u64)
    }

    fn import(&mut self, record: &RecordReader, cx: &mut Cx) -> Result<(), ArgError> {
        let (worker, _): (u8, [u8; 8]) = record.key()?;
        let mut packet: Batch = [record.packet(cx)?].into_iter().collect();
        let queues = self.queues.len().max(usize::from(worker) + 1);
        self.queues.resize_with(queues, PacketQueue::default);
        self.queues[usize::from(worker)].append(&mut packet);
        Ok(())
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
