//! `CPUQueue`: a queue for each worker.

use castanet_engine::prelude::*;
use std::collections::VecDeque;

/// Keeps the packets of each worker in a queue of their own, first in, first out.
///
/// Whoever pulls is served from the workers' queues in turn, whichever output it
/// pulls from. A packet that finds its worker's queue full is dropped. A smaller capacity
/// drops the youngest packets of each worker beyond it at once (`drops.reset`).
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
    /// How many packets of one worker find room.
    #[arg(live, default = 128, range = 1..)]
    capacity: usize,
}

#[derive(Fate)]
pub enum Way {
    /// Packets, when they are pulled.
    Next,
    /// Packets that found their worker's queue full.
    #[drop]
    Full,
}

/// The queues, by worker.
#[derive(Default, Local)]
#[local(methods)]
pub struct Lines {
    lines: Vec<VecDeque<Packet>>,
    /// Whose turn it is.
    next: usize,
    /// Packets that found no room.
    #[read]
    drops: u64,
}

#[handlers]
impl Lines {
    /// How many packets are kept.
    #[read]
    fn length(&self) -> usize {
        self.lines.iter().map(VecDeque::len).sum()
    }
}

impl Store for CPUQueue {
    type Local = Lines;
    type Fate = Way;

    fn put(&self, lines: &mut Lines, mut batch: Batch, cx: &mut Cx) {
        let worker = cx.worker();
        if lines.lines.len() <= worker {
            lines.lines.resize_with(worker + 1, VecDeque::new);
        }
        let line = &mut lines.lines[worker];
        let excess = batch.split_off(self.capacity.saturating_sub(line.len()));
        line.extend(batch.drain());
        if !excess.is_empty() {
            lines.drops += excess.len() as u64;
            cx.emit_batch(Way::Full, excess);
        }
    }

    fn take(&self, lines: &mut Lines, n: usize, into: &mut Batch, _: &mut Cx) {
        for _ in 0..lines.lines.len() {
            lines.next = (lines.next + 1) % lines.lines.len();
            let line = &mut lines.lines[lines.next];
            let count = line.len().min(n - into.len());
            into.extend(line.drain(..count));
            if into.len() == n {
                return;
            }
        }
    }

    fn held(&self, lines: &Lines) -> usize {
        lines.length()
    }

    fn shrink(&self, lines: &mut Lines) {
        lines.lines.iter_mut().for_each(|line| line.truncate(self.capacity));
    }
}
