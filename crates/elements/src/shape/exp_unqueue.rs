//! `EXPUnqueue`: pulls packets at random times.

use castanet_element::prelude::*;
use castanet_kit::rng::Rng;

/// Pulls packets at random times with a given average rate and pushes them on.
///
/// The times between packets are exponentially distributed: they do not depend on one another.
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
    /// Average rate in packets per second.
    #[arg(live, range = 1..)]
    rate: u64,
    /// Maximum number of packets per pull, and of packets that may become due while none is pulled.
    #[arg(keyword, default = 32, range = 1..)]
    burst: usize,
    /// Whether the element pulls packets.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// Seed of the random times; a random seed if 0.
    #[arg(keyword, default = 0)]
    seed: u64,
    /// Accepted for old configurations and ignored.
    #[arg(keyword)]
    #[allow(dead_code)]
    burst_size: Option<u64>,
}

/// The random times, and the counters of the handler `calls`.
#[derive(Default, Local)]
#[local(methods)]
pub struct EXPUnqueueState {
    rng: Option<Rng>,
    /// Time of the next packet that is not counted in `due` yet.
    next: Time,
    /// Number of packets that are due.
    due: usize,
    #[portable]
    runs: u64,
    #[portable]
    empty_runs: u64,
    #[portable]
    pushes: u64,
    #[portable]
    failed_pulls: u64,
    #[portable]
    packets: u64,
}

#[handlers]
impl EXPUnqueueState {
    /// Number of runs, of runs in which no packet was due, of pushes, of pulls that returned no
    /// packet, and of packets.
    #[read]
    fn calls(&self) -> String {
        format!(
            "{} calls to run_task()\n{} empty runs\n{} pushes\n{} failed pulls\n{} packets\n",
            self.runs, self.empty_runs, self.pushes, self.failed_pulls, self.packets
        )
    }
}

impl EXPUnqueue {
    /// Adds to `due` the packets whose time has come since the last call.
    fn refill(&self, state: &mut EXPUnqueueState, cx: &mut Cx) {
        let now = cx.now();
        let new = || Rng::new(if self.seed == 0 { cx.random() } else { self.seed });
        let first = state.rng.is_none();
        let rng = state.rng.get_or_insert_with(new);
        let mut gap = || Duration::from_nanos(rng.exponential_gap(self.rate as f64));
        if first {
            state.next = now + gap();
        }
        while state.next <= now && state.due < self.burst {
            state.due += 1;
            state.next = state.next + gap();
        }
        if state.due == self.burst && state.next <= now {
            // The maximum is due: packets in excess are not made up for.
            state.next = now + gap();
        }
    }
}

impl Source for EXPUnqueue {
    type Local = EXPUnqueueState;
    type Fate = ();

    fn produce(&self, state: &mut EXPUnqueueState, n: usize, cx: &mut Cx) -> NextRun {
        if !self.active {
            return NextRun::Done;
        }
        state.runs += 1;
        self.refill(state, cx);
        if state.due == 0 {
            state.empty_runs += 1;
            return NextRun::At(state.next);
        }
        let batch = cx.pull(0, n.min(state.due));
        if batch.is_empty() {
            state.failed_pulls += 1;
            return NextRun::Empty;
        }
        state.due -= batch.len();
        state.packets += batch.len() as u64;
        state.pushes += 1;
        cx.emit_batch((), batch);
        NextRun::Again
    }
}
