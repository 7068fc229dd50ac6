//! `castanet bench shared-packets`: packets that are shared, kept or made, beside a copy by hand.

use super::measure::{Run, is_selected, median, watched};
use super::router::{build, count, path, run_counted};
use castanet_element::class::Library;
use castanet_element::packet::BURST;
use castanet_runtime::router::Router;
use serde::Serialize;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// One line of the table.
#[derive(Serialize)]
pub struct Record {
    /// Name of the path that was measured.
    pub case: &'static str,
    /// Length of the packets in bytes.
    pub bytes: usize,
    /// Frames in rotation: of the ring, or of the trace that is replayed.
    pub frames: usize,
    /// Nanoseconds of processor time a packet that enters the path.
    pub ns_per_packet: f64,
    /// Nanoseconds of one copy of the same bytes by hand, over as many frames.
    pub copy_ns: f64,
    /// Cost as a multiple of the copy.
    pub ratio: f64,
}

/// Extent of the measurement.
pub struct Plan {
    /// The cases to measure; all of them if it is empty.
    pub cases: Vec<String>,
    /// Lengths of packets in bytes.
    pub bytes: Vec<usize>,
    /// Frames in rotation.
    pub frames: Vec<usize>,
    /// Runs of each side.
    pub rounds: usize,
    /// Length of one run.
    pub time: Duration,
}

/// The frames that a path uses in turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rotation {
    /// A ring of frames, into which templates are copied.
    Ring,
    /// A trace in memory, whose packets go out by frames of one burst.
    Trace,
    /// One template, whose copies go out by frames of one burst.
    Template,
}

/// A path of packets.
struct Case {
    name: &'static str,
    rotation: Rotation,
    /// Its configuration, by the length of packets and the number of frames.
    text: fn(usize, usize) -> String,
    /// The handler that counts the packets that enter the path.
    entered: &'static str,
    /// Handlers whose counts are all to be the same: each sees every packet once.
    ends: &'static [&'static str],
}

/// The cases.
const CASES: [Case; 10] = [
    Case {
        name: "tee-2",
        rotation: Rotation::Ring,
        text: |bytes, frames| {
            format!(
                "r :: BenchRing({frames}, LENGTH {bytes}) -> t :: Tee(2) -> a :: Discard; t[1] -> b :: Counter -> r;"
            )
        },
        entered: "r.count",
        ends: &["a.count", "b.count"],
    },
    Case {
        name: "tee-4",
        rotation: Rotation::Ring,
        text: |bytes, frames| {
            format!(
                "r :: BenchRing({frames}, LENGTH {bytes}) -> t :: Tee(4) -> a :: Discard; \
                 t[1] -> b :: Discard; t[2] -> c :: Discard; t[3] -> d :: Counter -> r;"
            )
        },
        entered: "r.count",
        ends: &["a.count", "b.count", "c.count", "d.count"],
    },
    Case {
        name: "tee-write",
        rotation: Rotation::Ring,
        text: |bytes, frames| {
            format!(
                "r :: BenchRing({frames}, LENGTH {bytes}) -> t :: Tee(2) \
                 -> StoreData(0, \\<00>) -> a :: Discard; t[1] -> b :: Counter -> r;"
            )
        },
        entered: "r.count",
        ends: &["a.count", "b.count"],
    },
    Case {
        name: "queue",
        rotation: Rotation::Ring,
        text: |bytes, frames| {
            format!("r :: BenchRing({frames}, LENGTH {bytes}) -> Queue -> u :: Unqueue -> r;")
        },
        entered: "u.count",
        ends: &["u.count"],
    },
    Case {
        name: "replay-write",
        rotation: Rotation::Trace,
        text: |bytes, frames| replay(bytes, frames, "StoreData(0, \\<00>)"),
        entered: "end.count",
        ends: &["end.count"],
    },
    Case {
        name: "replay-router",
        rotation: Rotation::Trace,
        text: |bytes, frames| trace(bytes, frames) + &path(0, 1, "play", "end :: Discard"),
        entered: "end.count",
        ends: &["end.count"],
    },
    Case {
        name: "replay-queue",
        rotation: Rotation::Trace,
        text: |bytes, frames| replay(bytes, frames, "Queue -> Unqueue"),
        entered: "end.count",
        ends: &["end.count"],
    },
    Case {
        name: "replay",
        rotation: Rotation::Trace,
        text: |bytes, frames| trace(bytes, frames) + "play -> end :: Discard;",
        entered: "end.count",
        ends: &["end.count"],
    },
    Case {
        name: "infinite-source",
        rotation: Rotation::Template,
        text: |bytes, _| {
            format!("s :: InfiniteSource(LENGTH {bytes}, BURST 64) -> end :: Discard;")
        },
        entered: "s.count",
        ends: &["s.count", "end.count"],
    },
    Case {
        name: "udp-flows",
        rotation: Rotation::Template,
        text: |bytes, frames| flows(bytes, -1, frames) + " -> end :: Discard;",
        entered: "s.count",
        ends: &["s.count", "end.count"],
    },
];

/// Their names.
pub fn names() -> [&'static str; CASES.len()] {
    CASES.each_ref().map(|case| case.name)
}

/// A source of UDP packets of as many flows as there are frames.
fn flows(bytes: usize, limit: i64, frames: usize) -> String {
    format!(
        "s :: FastUDPFlows(RATE 0, LIMIT {limit}, LENGTH {bytes}, SRCETH 2:0:0:0:0:1, \
         DSTETH 2:0:0:0:0:2, SRCIP 1.0.0.1, DSTIP 20.0.0.1, FLOWS {frames}, FLOWSIZE 1000000)"
    )
}

/// A replay of as many packets as there are frames.
fn trace(bytes: usize, frames: usize) -> String {
    let source = flows(bytes, frames as i64, frames);
    format!("{source} -> Queue({frames}) -> play :: ReplayUnqueue;\n")
}

/// A replay through `element`.
fn replay(bytes: usize, frames: usize, element: &str) -> String {
    trace(bytes, frames) + &format!("play -> {element} -> end :: Discard;")
}

/// Measures every case, the path and the copy in turn; `on_record` gets each record as it is made.
pub fn run(
    plan: &Plan,
    library: &Library,
    on_record: &mut dyn FnMut(Record),
) -> Result<(), String> {
    for case in CASES.iter().filter(|case| is_selected(&plan.cases, case.name)) {
        for &bytes in &plan.bytes {
            for &frames in &plan.frames {
                let (ns, copy) = compare(case, bytes, frames, plan, library)?;
                let ratio = ns / copy;
                let case = case.name;
                on_record(Record { case, bytes, frames, ns_per_packet: ns, copy_ns: copy, ratio });
            }
        }
    }
    Ok(())
}

/// Runs a path and the copy in turn; nanoseconds a packet of each.
fn compare(
    case: &Case,
    bytes: usize,
    frames: usize,
    plan: &Plan,
    library: &Library,
) -> Result<(f64, f64), String> {
    let mut router = build(&(case.text)(bytes, frames), 2 * frames, 1, true, library)?;
    let mut copies = Copies::new(case.rotation, bytes, frames);
    let (mut ours, mut by_hand) = (Vec::<Run>::new(), Vec::<Run>::new());
    for round in 0..=plan.rounds {
        let entered = |router: &mut Router| count(router, case.entered);
        let mine = watched(1, || run_counted(&mut router, plan.time, entered));
        let copy = watched(1, || copies.run(plan.time));
        // The first round warms up, and loads the trace.
        if round > 0 {
            ours.push(mine);
            by_hand.push(copy);
        }
    }
    lost_nothing(case, &mut router)?;
    Ok((median(&ours), median(&by_hand)))
}

/// Each packet came to each end, and none was dropped.
fn lost_nothing(case: &Case, router: &mut Router) -> Result<(), String> {
    let drops = router.read("drops").map_err(|e| e.to_string())?;
    if !drops.is_empty() {
        return Err(format!("{}: packets were dropped:\n{drops}", case.name));
    }
    let entered = count(router, case.entered);
    for end in case.ends {
        let came = count(router, end);
        if came != entered || came == 0 {
            let (name, from) = (case.name, case.entered);
            return Err(format!("{name}: {end} is {came}, but {from} is {entered}"));
        }
    }
    Ok(())
}

/// Distance of frames in bytes, as in a pool.
const STRIDE: usize = 2240;
/// Different packets in the traffic of a ring.
const TEMPLATES: usize = 256;

/// Copies of packets by hand.
struct Copies {
    bytes: usize,
    from: Vec<u8>,
    to: Vec<u8>,
    next: usize,
}

impl Copies {
    fn new(rotation: Rotation, bytes: usize, frames: usize) -> Copies {
        let (from, to) = match rotation {
            Rotation::Ring => (TEMPLATES, frames),
            Rotation::Trace => (frames, BURST),
            Rotation::Template => (1, BURST),
        };
        Copies { bytes, from: vec![1; from * STRIDE], to: vec![0; to * STRIDE], next: 0 }
    }

    /// Copies for a while; the number of packets.
    fn run(&mut self, time: Duration) -> u64 {
        let (started, before) = (Instant::now(), self.next);
        let (from, to) = (self.from.len() / STRIDE, self.to.len() / STRIDE);
        while started.elapsed() < time {
            for _ in 0..16 * BURST {
                let [from, to] = [from, to].map(|count| self.next % count * STRIDE);
                self.to[to..to + self.bytes].copy_from_slice(&self.from[from..from + self.bytes]);
                self.next += 1;
            }
            black_box(&mut self.to);
        }
        (self.next - before) as u64
    }
}
