//! `castanet bench scale`: throughput of workers that visit the same elements.

use super::measure::is_selected;
use super::paths::{self, Path};
use super::router::{build, count};
use super::worker_counts::{WorkerCount, measure};
use castanet_element::class::Library;
use castanet_runtime::router::Router;
use serde::Serialize;
use std::time::Duration;

/// One line of the table.
#[derive(Serialize)]
pub struct Record {
    /// Name of the path.
    pub case: &'static str,
    /// Number of workers.
    pub workers: usize,
    /// Million packets a second, all workers together.
    pub mpps: f64,
    /// Nanoseconds of processor time a packet.
    pub ns_per_packet: f64,
    /// Name of the reference.
    pub reference: &'static str,
    /// Its million packets a second.
    pub reference_mpps: f64,
}

/// Extent of the measurement.
pub struct Plan {
    /// The paths to measure; all of them if it is empty.
    pub cases: Vec<String>,
    /// Numbers of workers, beside one.
    pub workers: Vec<usize>,
    /// Runs of each case.
    pub rounds: usize,
    /// Length of one run.
    pub time: Duration,
}

/// Extent of a run that is traced.
pub struct TracePlan {
    /// The paths to run; all of them if it is empty.
    pub cases: Vec<String>,
    /// Numbers of workers, for each path.
    pub workers: Vec<usize>,
    /// Bursts of each worker.
    pub bursts: u64,
}

/// One path of a traced run.
#[derive(Serialize)]
pub struct TraceRecord {
    /// Name of the path.
    pub case: &'static str,
    /// Number of workers.
    pub workers: usize,
    /// Packets that came to its end.
    pub packets: u64,
}

/// A path that several workers take.
struct Case {
    name: &'static str,
    path: &'static Path,
    /// Whether each worker has a queue of its own before it.
    queues: bool,
}

/// The path with a queue for each worker.
const QUEUES: &str = "queue-each";
/// Frames of each worker, beside those of its cache.
const FRAMES: usize = 4096;

/// The cases: every path that begins at a source, and one behind queues.
fn cases() -> impl Iterator<Item = Case> {
    let shared = paths::with_source().map(|path| Case { name: path.name, path, queues: false });
    let queues = paths::find("forward").map(|path| Case { name: QUEUES, path, queues: true });
    shared.chain(queues)
}

/// Their names.
pub fn names() -> Vec<&'static str> {
    cases().map(|case| case.name).collect()
}

/// Measures every case, each number of workers in turn, round after round; `on_record` gets each
/// record as it is made.
pub fn run(
    plan: &Plan,
    library: &Library,
    on_record: &mut dyn FnMut(Record),
) -> Result<(), String> {
    for case in cases().filter(|case| is_selected(&plan.cases, case.name)) {
        let measured = measure(&plan.workers, plan.rounds, plan.time, |workers| {
            router(&case, workers, None, library)
        })?;
        let reference_mpps = measured.first().map_or(f64::NAN, WorkerCount::mpps);
        measured.iter().for_each(|it| {
            on_record(Record {
                case: case.name,
                workers: it.workers,
                mpps: it.mpps(),
                ns_per_packet: it.ns_per_packet(),
                reference: "one worker",
                reference_mpps,
            });
        });
    }
    Ok(())
}

/// Runs every case with each number of workers once, and so many bursts for each worker;
/// `on_record` gets each record as it is made.
pub fn run_bursts(
    plan: &TracePlan,
    library: &Library,
    on_record: &mut dyn FnMut(TraceRecord),
) -> Result<(), String> {
    for case in cases().filter(|case| is_selected(&plan.cases, case.name)) {
        for &workers in &plan.workers {
            let mut router = router(&case, workers, Some(plan.bursts), library)?;
            router.run(None);
            let packets = count(&mut router, "end.count");
            on_record(TraceRecord { case: case.name, workers, packets });
        }
    }
    Ok(())
}

fn router(
    case: &Case,
    workers: usize,
    bursts: Option<u64>,
    library: &Library,
) -> Result<Router, String> {
    let text = configuration(case, workers, bursts);
    build(&text, FRAMES * workers, workers, true, library)
        .map_err(|error| format!("{}: {error}", case.name))
}

/// Workers with traffic of their own, which meets at the beginning of the path.
fn configuration(case: &Case, workers: usize, bursts: Option<u64>) -> String {
    let mut text = String::from("begin :: Null; end :: Discard;\n");
    text += &case.path.between("begin", "end");
    let traffic = case.path.traffic.name();
    let limit = bursts.map_or(String::new(), |bursts| format!(", BURSTS {bursts}"));
    for w in 0..workers {
        text += &format!("s{w} :: BenchSource(TRAFFIC {traffic}, SET {w}{limit})");
        text += &if case.queues {
            format!(
                " -> Queue(1024) -> u{w} :: Unqueue(BURST 64) -> begin;
                 StaticThreadSched(s{w} {w}, u{w} {w});\n"
            )
        } else {
            format!(" -> begin; StaticThreadSched(s{w} {w});\n")
        };
    }
    if bursts.is_some() {
        // The router stops when all sources have come to their end.
        text += &format!("DriverManager({}stop);\n", "wait_stop, ".repeat(workers));
    }
    text
}
