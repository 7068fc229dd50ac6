//! `castanet bench flows`: a table of flows of each size, beside a hash map.

mod tables;

use super::measure::{middle, ticks_per_ns};
use castanet_kit::conntrack::Tuple4;
use castanet_wire::ip_proto;
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::net::Ipv4Addr;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use tables::{FlowStore, Map, Table};

/// One line of the table.
#[derive(Serialize)]
pub struct Record {
    /// Operation on the table.
    pub case: &'static str,
    /// Flows in all tables together.
    pub flows: usize,
    /// Workers, each with a table of its own.
    pub workers: usize,
    /// Nanoseconds of processor time for a flow.
    pub ns: f64,
    /// The same in ticks of the time-stamp counter.
    pub cycles: f64,
    /// The longest that a burst of 32 took, in microseconds.
    pub longest_us: f64,
    /// Bytes for a flow, beside what is kept of it.
    pub bytes: f64,
    /// Name of the reference.
    pub reference: &'static str,
    /// Its nanoseconds.
    pub reference_ns: f64,
    /// Its longest burst.
    pub reference_longest_us: f64,
}

/// Extent of the measurement.
pub struct Plan {
    /// Flows in all tables together, for each case.
    pub flows: Vec<usize>,
    /// Numbers of workers, for each case.
    pub workers: Vec<usize>,
    /// Runs of each side.
    pub rounds: usize,
    /// Least time for which one case runs.
    pub time: Duration,
}

/// Operations on a table, in the order in which they run.
const CASES: [&str; 5] = ["insert", "find", "find-one", "absent", "expire"];
/// Flows that are asked for together.
const BURST: usize = 32;

/// Cost of one operation for one worker.
#[derive(Clone, Copy)]
struct Cost {
    ns: f64,
    longest_us: f64,
    undisturbed: bool,
}

/// Costs of all operations, and the table's bytes for a flow.
struct Run {
    costs: [Cost; CASES.len()],
    bytes: f64,
}

/// Measures each size by each number of workers; `on_record` gets each record as it is made.
pub fn run(plan: &Plan, on_record: &mut dyn FnMut(Record)) {
    let ticks = ticks_per_ns();
    for &flows in &plan.flows {
        for &workers in &plan.workers {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..plan.rounds {
                ours.extend(together::<Table>(flows, workers, plan.time));
                theirs.extend(together::<Map>(flows, workers, plan.time));
            }
            for (case, name) in CASES.into_iter().enumerate() {
                let [(ns, longest_us), reference] = [&ours, &theirs].map(|all| summary(all, case));
                let bytes = ours.iter().map(|run| run.bytes).fold(0.0, f64::max);
                on_record(Record {
                    case: name,
                    flows,
                    workers,
                    ns,
                    cycles: ns * ticks,
                    longest_us,
                    bytes,
                    reference: "hash map",
                    reference_ns: reference.0,
                    reference_longest_us: reference.1,
                });
            }
        }
    }
}

/// The middle of what a case cost, and of its longest bursts.
fn summary(runs: &[Run], case: usize) -> (f64, f64) {
    let costs = runs.iter().map(|run| run.costs[case]);
    let by = |value: fn(&Cost) -> f64| middle(costs.clone().map(|c| (value(&c), c.undisturbed))).0;
    (by(|cost| cost.ns), by(|cost| cost.longest_us))
}

/// Runs all cases on workers that do the same at the same time, each with its
/// share of the flows.
fn together<S: FlowStore>(flows: usize, workers: usize, time: Duration) -> Vec<Run> {
    let barrier = Barrier::new(workers);
    std::thread::scope(|scope| {
        let one = |_| scope.spawn(|| alone::<S>((flows / workers).max(BURST), time, &barrier));
        let all: Vec<_> = (0..workers).map(one).collect();
        all.into_iter().filter_map(|worker| worker.join().ok()).collect()
    })
}

/// Runs all cases on one worker.
fn alone<S: FlowStore>(flows: usize, time: Duration, barrier: &Barrier) -> Run {
    let flows = flows / BURST * BURST;
    let mut subject = S::new(flows);
    let (mut turn, mut keys) = (RandomNumbers::new(), Vec::with_capacity(BURST));
    let insert = timed(time, barrier, |watch| {
        subject.clear();
        for first in (0..flows).step_by(BURST) {
            watch.burst(|| {
                keys.clear();
                keys.extend((first..first + BURST).map(key));
                // As with packets: their flows are looked for, and are not there.
                assert_eq!(subject.find_all(&keys), 0, "a flow is there already");
                keys.iter().for_each(|key| subject.insert(*key));
            });
        }
    });
    let bytes = subject.memory() as f64 / flows as f64 - S::KEPT as f64;
    let mut lookups = |subject: &mut S, base: usize, find: fn(&mut S, &[Tuple4]) -> usize| {
        timed(time, barrier, |watch| {
            for _ in 0..64 {
                keys.clear();
                keys.extend((0..BURST).map(|_| key(base + turn.next(flows))));
                let found = watch.burst(|| find(subject, &keys));
                assert_eq!(found, if base == 0 { BURST } else { 0 }, "a lookup went wrong");
            }
        })
    };
    let find = lookups(&mut subject, 0, S::find_all);
    let find_one = lookups(&mut subject, 0, S::find_each);
    let absent = lookups(&mut subject, flows, S::find_all);
    let mut filled = true;
    let expire = timed_with(time, barrier, &mut subject, |subject, watch| {
        if !std::mem::take(&mut filled) {
            (0..flows).for_each(|n| subject.insert(key(n)));
        }
        watch.start();
        while watch.burst_of(|| subject.expire(BURST)) > 0 {}
    });
    assert_eq!(subject.len(), 0, "not all flows have ended");
    Run { costs: [insert, find, find_one, absent, expire], bytes }
}

/// Distinct flows that have nothing in common.
fn key(n: usize) -> Tuple4 {
    let mixed = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (ports, dst) = ((mixed >> 8) as u32, Ipv4Addr::from_bits((mixed >> 32) as u32));
    let src = (Ipv4Addr::from_bits(n as u32), ports as u16);
    Tuple4::new(src, (dst, (ports >> 16) as u16), ip_proto::UDP)
}

/// Numbers in no order.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn new() -> RandomNumbers {
        RandomNumbers(0x2545_f491_4f6c_dd1d)
    }

    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * below as u64) >> 32) as usize
    }
}

/// Counts flows, and times bursts of them.
struct StopWatch {
    clock: quanta::Clock,
    flows: usize,
    longest: u64,
    spent: f64,
    wall: Duration,
    since: (f64, Instant),
}

impl StopWatch {
    fn new() -> StopWatch {
        let since = (thread_time(), Instant::now());
        let (clock, wall) = (quanta::Clock::new(), Duration::ZERO);
        StopWatch { clock, flows: 0, longest: 0, spent: 0.0, wall, since }
    }

    /// Starts the stop watch.
    fn start(&mut self) {
        self.since = (thread_time(), Instant::now());
    }

    /// Stops the stop watch.
    fn stop(&mut self) {
        self.spent += thread_time() - self.since.0;
        self.wall += self.since.1.elapsed();
    }

    fn burst<R>(&mut self, mut work: impl FnMut() -> R) -> R {
        let started = self.clock.raw();
        let done = work();
        self.longest = self.longest.max(self.clock.raw().wrapping_sub(started));
        self.flows += BURST;
        done
    }

    /// A burst that says how many flows it was about.
    fn burst_of(&mut self, work: impl FnMut() -> usize) -> usize {
        let done = self.burst(work);
        self.flows = self.flows + done - BURST;
        done
    }
}

fn timed(time: Duration, barrier: &Barrier, mut work: impl FnMut(&mut StopWatch)) -> Cost {
    timed_with(time, barrier, &mut (), |(), watch| {
        watch.start();
        work(watch);
    })
}

/// Repeats `work`, which says when it begins, until that has taken long enough.
fn timed_with<S>(
    time: Duration,
    barrier: &Barrier,
    subject: &mut S,
    mut work: impl FnMut(&mut S, &mut StopWatch),
) -> Cost {
    barrier.wait();
    let mut watch = StopWatch::new();
    while watch.wall < time {
        work(subject, &mut watch);
        watch.stop();
    }
    Cost {
        ns: watch.spent * 1e9 / watch.flows as f64,
        longest_us: watch.clock.delta_as_nanos(0, watch.longest) as f64 / 1e3,
        undisturbed: watch.spent >= 0.97 * watch.wall.as_secs_f64(),
    }
}

/// Seconds of processor time that this thread has had.
fn thread_time() -> f64 {
    let spent = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    spent.map_or(0.0, |spent| Duration::from(spent).as_secs_f64())
}
