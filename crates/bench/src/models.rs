//! `castanet bench models`: one path, and the ways to divide it between workers
//! (FastClick paper, 5.3).

use super::measure::{Run, is_selected, median};
use super::router::{self, path, rate, sample};
use castanet_element::class::Library;
use castanet_runtime::router::Router;
use serde::Serialize;
use std::time::Duration;

/// One line of the table.
#[derive(Serialize)]
pub struct Record {
    /// Division of the path between workers.
    pub case: &'static str,
    /// Workers that run it.
    pub workers: usize,
    /// Million packets a second at the end of the path.
    pub mpps: f64,
    /// Nanoseconds of processor time a packet, all workers together.
    pub ns_per_packet: f64,
    /// Share of the packets that found a queue full.
    pub lost: f64,
    /// Name of the reference.
    pub reference: &'static str,
    /// Its million packets a second.
    pub reference_mpps: f64,
}

/// Extent of the measurement.
pub struct Plan {
    /// The models to measure; all of them if it is empty.
    pub cases: Vec<String>,
    /// Runs of each division.
    pub rounds: usize,
    /// Length of one run.
    pub time: Duration,
}

/// A way to divide the path: the elements between its halves, and the worker of each half.
struct Model {
    name: &'static str,
    between: &'static str,
    sched: &'static str,
    workers: usize,
}

/// The models of the paper.
const MODELS: [Model; 5] = [
    Model { name: REFERENCE, between: "->", sched: "", workers: 1 },
    Model {
        name: "queue",
        between: "-> Queue(1024) -> puller :: Unqueue(BURST 64) ->",
        sched: "",
        workers: 1,
    },
    Model {
        name: "queue-2-workers",
        between: "-> Queue(1024) -> puller :: Unqueue(BURST 64) ->",
        sched: "StaticThreadSched(source 0, puller 1);",
        workers: 2,
    },
    Model {
        name: "pipeliner",
        between: "-> hand :: Pipeliner(64) ->",
        sched: "StaticThreadSched(source 0, hand 1);",
        workers: 2,
    },
    Model {
        name: "full-push-2-workers",
        between: "->",
        sched: "StaticThreadSched(source 0, source2 1); source2 :: BenchSource -> begin;",
        workers: 2,
    },
];

/// Their names.
pub fn names() -> [&'static str; MODELS.len()] {
    MODELS.each_ref().map(|model| model.name)
}

/// One worker takes each packet all the way.
const REFERENCE: &str = "full-push";

/// Frames in use: enough for the fullest queue.
const FRAMES: usize = 32768;

/// Measures the models in turn, round after round.
pub fn run(plan: &Plan, library: &Library) -> Result<Vec<Record>, String> {
    let wanted = |m: &&Model| m.name == REFERENCE || is_selected(&plan.cases, m.name);
    let mut beds = Vec::new();
    for model in MODELS.iter().filter(wanted) {
        let text = configuration(model);
        let router = router::build(&text, FRAMES, model.workers, true, library)?;
        beds.push((model, router, Vec::new()));
    }
    for round in 0..=plan.rounds {
        for (model, router, samples) in &mut beds {
            let sample = sample(router, model.workers, plan.time, counted);
            // The first round warms up.
            if round > 0 {
                samples.push(sample);
            }
        }
    }
    let rates: Vec<f64> = beds.iter().map(|(_, _, samples)| rate(samples)).collect();
    let reference = rates.first().copied().unwrap_or(f64::NAN);
    let rows = beds.iter_mut().zip(rates);
    rows.map(|((model, router, samples), mpps)| {
        let (lost, arrived) = (lost(router)?, counted(router));
        let runs: Vec<Run> = samples.iter().map(|s| s.run).collect();
        Ok(Record {
            case: model.name,
            workers: model.workers,
            mpps,
            ns_per_packet: median(&runs),
            lost: lost as f64 / (lost + arrived).max(1) as f64,
            reference: REFERENCE,
            reference_mpps: reference,
        })
    })
    .collect()
}

fn counted(router: &mut Router) -> u64 {
    router::count(router, "end.count")
}

/// Number of packets that found a queue full; nothing else may drop any.
fn lost(router: &mut Router) -> Result<u64, String> {
    let drops = router.read("drops").map_err(|e| e.to_string())?;
    let full = |line: &str| line.split_once(" full ")?.1.parse::<u64>().ok();
    drops
        .lines()
        .map(|line| full(line).ok_or_else(|| format!("packets were dropped: {line}")))
        .sum()
}

/// The router path, divided where packets would be sent.
fn configuration(model: &Model) -> String {
    let path = path(0, 1, "begin", "middle");
    let (between, sched) = (model.between, model.sched);
    format!(
        "source :: BenchSource -> begin :: Null; middle :: Null; end :: Discard;
         {path} middle {between} end; {sched}"
    )
}
