//! `Pipeliner`: passes packets from all workers to one.

use super::ring_capacity::RingCapacity;
use castanet_element::prelude::*;
use std::collections::VecDeque;

/// Passes packets from the workers that push them to its own worker, which pushes them on.
///
/// It divides the work of a path between workers: one worker runs the elements before it, and the
/// Pipeliner's own worker (see `StaticThreadSched`) those behind it. Each worker that pushes has
/// its own ring; the Pipeliner's worker takes bursts from all rings in rotation. Bursts stay whole.
/// Bursts that the Pipeliner's own worker pushes go straight through. A burst that finds its ring
/// full is dropped. With BLOCKING, sources wait for room instead, and bursts of other elements are
/// stored beyond the capacity.
///
/// ```click
/// in -> p :: Pipeliner(0, BLOCKING false) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > in  1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// = p.count 2
/// = p.dropped 0
/// = p.length 0
/// ```
///
/// ```click
/// InfiniteSource(LIMIT 5) -> p :: Pipeliner(CAPACITY 4, DIRECT_TRAVERSAL false, ACTIVE false)
///     -> c :: Counter -> Discard
/// + 1ms
/// = p.length 4
/// = p.drops.full 1
/// = p.dropped 1
/// ! p.active true
/// = c.count 4
/// ```
#[derive(Clone, Element)]
#[element(room = "threads", ports = "1-/1", processing = "h/h")]
pub struct Pipeliner {
    /// Maximum number of bursts in the ring of each worker; 1024 if 0.
    #[arg(default = RingCapacity(1024), shown = "1024")]
    capacity: RingCapacity,
    /// Number of bursts that FastClick takes at a time; ignored, as the burst size of the engine
    /// decides here.
    #[arg(default = 32)]
    #[allow(dead_code)]
    burst: i64,
    /// Whether sources wait for room; no packet is dropped then.
    #[arg(default = false)]
    blocking: bool,
    /// Whether packets are passed on.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// Whether FastClick polls while the rings are empty; ignored, as the worker is woken here.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    always_up: bool,
    /// Whether packets that its own worker pushes go straight through.
    #[arg(keyword, default = true)]
    direct_traversal: bool,
    /// Whether FastClick omits a warning if all packets come from its own worker; ignored.
    /// `castanet explain` lists the workers from which packets come.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    nouseless: bool,
    /// Whether the first drops are reported.
    #[arg(keyword, default = true)]
    verbose: bool,
}

#[derive(Fate)]
pub enum PipelinerExit {
    /// Packets that are passed on, on its own worker.
    Onward,
    /// Packets that find the ring of their worker full. Raise CAPACITY, or move work from the
    /// worker that empties the rings to another one.
    #[drop]
    Full,
}

/// The rings, and the counters of packets.
#[derive(Default, Local)]
#[local(methods)]
pub struct PipelinerState {
    /// By worker: the bursts that it has pushed.
    rings: Vec<VecDeque<Batch>>,
    /// Number of the ring from which the next burst is taken.
    next: usize,
    /// Number of packets accepted.
    #[read]
    #[portable]
    count: u64,
    /// Number of packets dropped.
    #[read]
    #[portable]
    dropped: u64,
}

#[handlers]
impl PipelinerState {
    /// Number of packets in the rings.
    #[read]
    fn length(&self) -> usize {
        self.rings.iter().flatten().map(Batch::len).sum()
    }
    /// The ring of the worker with this number.
    fn ring_of(&mut self, worker: usize) -> &mut VecDeque<Batch> {
        if self.rings.len() <= worker {
            self.rings.resize_with(worker + 1, VecDeque::new);
        }
        &mut self.rings[worker]
    }
}

impl Store for Pipeliner {
    type Local = PipelinerState;
    type Fate = PipelinerExit;
    const NOTIFIES: bool = true;

    fn enqueue(&self, state: &mut PipelinerState, batch: Batch, cx: &mut Cx) {
        const REPORTS: u64 = 10;
        let count = batch.len() as u64;
        let ring = state.ring_of(cx.worker());
        if ring.len() >= self.capacity.0 && !self.blocking {
            state.dropped += count;
            if self.verbose && state.dropped < REPORTS {
                cx.chatter(&format!("Pipeliner: dropped {} packets", state.dropped));
            }
            return cx.emit_batch(PipelinerExit::Full, batch);
        }
        if self.direct_traversal && self.active && ring.is_empty() && cx.is_home() {
            cx.emit_batch(PipelinerExit::Onward, batch);
        } else {
            ring.push_back(batch);
        }
        state.count += count;
    }

    fn dequeue(&self, state: &mut PipelinerState, n: usize, into: &mut Batch, _: &mut Cx) {
        let mut empty = 0;
        while empty < state.rings.len() {
            let ring = state.next % state.rings.len();
            match state.rings[ring].front() {
                None => empty += 1,
                Some(first) if !into.is_empty() && into.len() + first.len() > n => return,
                Some(_) => {
                    state.rings[ring].pop_front().iter_mut().for_each(|burst| into.append(burst));
                    empty = 0;
                }
            }
            state.next = ring + 1;
        }
    }

    fn held(&self, state: &PipelinerState) -> usize {
        state.length()
    }

    /// Room for the sources of all workers: none while any ring is full.
    fn room(&self, state: &PipelinerState) -> usize {
        match self.blocking && state.rings.iter().any(|ring| ring.len() >= self.capacity.0) {
            true => 0,
            false => usize::MAX,
        }
    }

    fn is_active(&self, _: &PipelinerState) -> bool {
        self.active
    }
}
