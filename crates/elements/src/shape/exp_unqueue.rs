//! `EXPUnqueue`: from pull to push, at random times.

use castanet_engine::prelude::*;
use castanet_kit::rng::Rng;

/// Pulls packets at a rate and at random times, and pushes them on.
///
/// The times between packets are exponentially distributed, as those of a Poisson
/// process: the next does not know how long ago the last was.
///
/// ```click
/// in -> q :: Queue -> u :: EXPUnqueue(1000, SEED 7) -> c :: Counter -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// = u.rate 1000
/// = u.active true
/// + 20ms
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = c.count 1
/// ! u.active false
/// > in 1.0.0.2 > 2.0.0.2 udp
/// + 1s
/// = q.length 1
/// ! u.rate 500
/// ! u.active true
/// + 50ms
/// < out 1.0.0.2 > 2.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "shape", ports = "1/1", processing = "l/h")]
pub struct EXPUnqueue {
    /// Packets a second, on average.
    #[arg(live, range = 1..)]
    rate: u64,
    /// How many packets to pull at most at a time, where several are due.
    #[arg(keyword, default = 32, range = 1..)]
    burst: usize,
    /// Whether to pull at all.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// Makes the times the same every time; 0 does not.
    #[arg(keyword, default = 0)]
    seed: u64,
    /// Accepted for the sake of old configurations; packets that are due are never more than come.
    #[arg(keyword)]
    #[allow(dead_code)]
    burst_size: Option<u64>,
}

/// When packets are due.
#[derive(Default, Local)]
#[local(methods)]
pub struct Due {
    chance: Option<Rng>,
    /// When the next is due that has not been counted yet.
    next: Time,
    /// How many are due.
    due: usize,
    runs: u64,
    empty_runs: u64,
    pushes: u64,
    failed_pulls: u64,
    packets: u64,
}

#[handlers]
impl Due {
    /// How often it ran, how often too early, pushed, found nothing, and how many packets it pushed.
    #[read]
    fn calls(&self) -> String {
        format!(
            "{} calls to run_task()\n{} empty runs\n{} pushes\n{} failed pulls\n{} packets\n",
            self.runs, self.empty_runs, self.pushes, self.failed_pulls, self.packets
        )
    }
}

impl EXPUnqueue {
    /// Counts what has become due.
    fn refill(&self, due: &mut Due, cx: &mut Cx) {
        let now = cx.now();
        let new = || Rng::new(if self.seed == 0 { cx.random() } else { self.seed });
        let first = due.chance.is_none();
        let chance = due.chance.get_or_insert_with(new);
        let mut gap = || Duration::from_nanos(chance.exponential_gap(self.rate as f64));
        if first {
            due.next = now + gap();
        }
        while due.next <= now && due.due < self.burst {
            due.due += 1;
            due.next = due.next + gap();
        }
        if due.due == self.burst && due.next <= now {
            // Nobody came for so many: what was due before is not made up for.
            due.next = now + gap();
        }
    }
}

impl Source for EXPUnqueue {
    type Local = Due;
    type Fate = ();

    fn ask(&self, due: &mut Due, n: usize, cx: &mut Cx) -> Asked {
        if !self.active {
            return Asked::Done;
        }
        due.runs += 1;
        self.refill(due, cx);
        if due.due == 0 {
            due.empty_runs += 1;
            return Asked::At(due.next);
        }
        let batch = cx.pull(0, n.min(due.due));
        if batch.is_empty() {
            due.failed_pulls += 1;
            return Asked::Empty;
        }
        due.due -= batch.len();
        due.packets += batch.len() as u64;
        due.pushes += 1;
        cx.emit_batch((), batch);
        Asked::Again
    }
}
