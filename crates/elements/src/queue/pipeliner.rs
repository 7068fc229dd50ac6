//! `Pipeliner`: from any worker to one.

use castanet_engine::prelude::*;
use std::collections::VecDeque;

/// Hands packets from the workers that push them to its own, which pushes them on.
///
/// So the work of a path can be divided between workers: one does what comes
/// before, the Pipeliner's own (see `StaticThreadSched`) what comes after. Bursts
/// change hands whole, and what its own worker pushes goes straight through. A
/// full one drops, or if BLOCKING lets sources wait for room; packets that come
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
/// in -> p :: Pipeliner(CAPACITY 4, DIRECT_TRAVERSAL false, ACTIVE false) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// + 1ms
/// > in  1.0.0.2 > 2.0.0.2 udp
/// + 1ms
/// > in  1.0.0.3 > 2.0.0.2 udp
/// + 1ms
/// > in  1.0.0.4 > 2.0.0.2 udp
/// + 1ms
/// > in  1.0.0.5 > 2.0.0.2 udp
/// = p.length 4
/// = p.drops.full 1
/// = p.dropped 1
/// ! p.active true
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.0.3 > 2.0.0.2 udp
/// < out 1.0.0.4 > 2.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(ports = "1-/1", processing = "h/h")]
pub struct Pipeliner {
    /// How many bursts find room.
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
    /// Packets that found it full.
    #[drop]
    Full,
}

/// The bursts on their way.
#[derive(Default, Local)]
#[local(methods)]
pub struct Line {
    bursts: VecDeque<Batch>,
    /// Packets taken in.
    #[read]
    count: u64,
    /// Packets dropped.
    #[read]
    dropped: u64,
}

#[handlers]
impl Line {
    /// Packets kept.
    #[read]
    fn length(&self) -> usize {
        self.bursts.iter().map(Batch::len).sum()
    }
}

impl Store for Pipeliner {
    type Local = Line;
    type Fate = Way;

    fn put(&self, line: &mut Line, batch: Batch, cx: &mut Cx) {
        const REPORTS: u64 = 10;
        let count = batch.len() as u64;
        if line.bursts.len() >= self.capacity && !self.blocking {
            line.dropped += count;
            if self.verbose && line.dropped < REPORTS {
                cx.chatter(&format!("Pipeliner: dropped {} packets", line.dropped));
            }
            return cx.emit_batch(Way::Full, batch);
        }
        line.count += count;
        if self.direct_traversal && self.active && line.bursts.is_empty() && cx.at_home() {
            cx.emit_batch(Way::Onward, batch);
        } else {
            line.bursts.push_back(batch);
        }
    }

    fn take(&self, line: &mut Line, n: usize, into: &mut Batch, _: &mut Cx) {
        while let Some(first) = line.bursts.front() {
            if !into.is_empty() && into.len() + first.len() > n {
                return;
            }
            line.bursts.pop_front().iter_mut().for_each(|burst| into.append(burst));
        }
    }

    fn held(&self, line: &Line) -> usize {
        line.length()
    }

    fn room(&self, line: &Line) -> usize {
        match (self.blocking, line.bursts.len() < self.capacity) {
            (true, false) => 0,
            _ => usize::MAX,
        }
    }

    fn active(&self, _: &Line) -> bool {
        self.active
    }
}
