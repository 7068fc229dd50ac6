//! `Pipeliner`: from any worker to one.

use castanet_engine::prelude::*;
use std::collections::VecDeque;

/// Hands packets from the workers that push them to its own, which pushes them on.
///
/// So the work of a path can be divided between workers: one does what comes
/// before, the Pipeliner's own (see `StaticThreadSched`) what comes after. Each worker
/// that pushes has a ring of its own; the Pipeliner's takes from all of them in rotation.
/// Bursts change hands whole, and what its own worker pushes goes straight through. A
/// full ring drops, or if BLOCKING lets sources wait for room; packets that come
/// from elsewhere all the same are then kept beyond the capacity.
///
/// ```click
/// in -> p :: Pipeliner(BLOCKING false) -> out
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
    /// How many bursts of each worker find room.
    #[arg(default = 1024, range = 4..)]
    capacity: usize,
    /// How many bursts FastClick takes out at a time; here the engine's burst decides.
    #[arg(default = 32)]
    #[allow(dead_code)]
    burst: i64,
    /// Whether sources wait for room, and nothing is dropped.
    #[arg(default = false)]
    blocking: bool,
    /// Whether to hand anything on.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// Whether to keep looking while there is nothing; its worker is woken, so there is no need to.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    always_up: bool,
    /// Whether what its own worker pushes goes straight through.
    #[arg(keyword, default = true)]
    direct_traversal: bool,
    /// Whether to be silent where all packets come from its own worker; `castanet explain` says who they come from.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    nouseless: bool,
    /// Whether to report the first drops.
    #[arg(keyword, default = true)]
    verbose: bool,
}

#[derive(Fate)]
pub enum Way {
    /// Packets, on its own worker.
    Onward,
    /// Packets that found their worker's ring full.
    #[drop]
    Full,
}

/// The bursts on their way.
#[derive(Default, Local)]
#[local(methods)]
pub struct Rings {
    /// By worker that pushes.
    rings: Vec<VecDeque<Batch>>,
    /// The ring that is taken from next.
    next: usize,
    /// Packets taken in.
    #[read]
    count: u64,
    /// Packets dropped.
    #[read]
    dropped: u64,
}

#[handlers]
impl Rings {
    /// Packets kept.
    #[read]
    fn length(&self) -> usize {
        self.rings.iter().flatten().map(Batch::len).sum()
    }
}

impl Rings {
    /// The ring of a worker that pushes.
    fn of(&mut self, worker: usize) -> &mut VecDeque<Batch> {
        if self.rings.len() <= worker {
            self.rings.resize_with(worker + 1, VecDeque::new);
        }
        &mut self.rings[worker]
    }
}

impl Store for Pipeliner {
    type Local = Rings;
    type Fate = Way;
    const NOTIFIES: bool = true;

    fn put(&self, rings: &mut Rings, batch: Batch, cx: &mut Cx) {
        const REPORTS: u64 = 10;
        let count = batch.len() as u64;
        let ring = rings.of(cx.worker());
        if ring.len() >= self.capacity && !self.blocking {
            rings.dropped += count;
            if self.verbose && rings.dropped < REPORTS {
                cx.chatter(&format!("Pipeliner: dropped {} packets", rings.dropped));
            }
            return cx.emit_batch(Way::Full, batch);
        }
        if self.direct_traversal && self.active && ring.is_empty() && cx.at_home() {
            cx.emit_batch(Way::Onward, batch);
        } else {
            ring.push_back(batch);
        }
        rings.count += count;
    }

    fn take(&self, rings: &mut Rings, n: usize, into: &mut Batch, _: &mut Cx) {
        let mut empty = 0;
        while empty < rings.rings.len() {
            let ring = rings.next % rings.rings.len();
            match rings.rings[ring].front() {
                None => empty += 1,
                Some(first) if !into.is_empty() && into.len() + first.len() > n => return,
                Some(_) => {
                    rings.rings[ring].pop_front().iter_mut().for_each(|burst| into.append(burst));
                    empty = 0;
                }
            }
            rings.next = ring + 1;
        }
    }

    fn held(&self, rings: &Rings) -> usize {
        rings.length()
    }

    /// Sources of all workers wait while one's ring is full.
    fn room(&self, rings: &Rings) -> usize {
        match self.blocking && rings.rings.iter().any(|ring| ring.len() >= self.capacity) {
            true => 0,
            false => usize::MAX,
        }
    }

    fn active(&self, _: &Rings) -> bool {
        self.active
    }
}
