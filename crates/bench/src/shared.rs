//! `castanet bench shared`: throughput of workers that share connections or mappings.

use super::measure::is_selected;
use super::router::build;
use super::worker_counts::{WorkerCount, measure};
use castanet_element::class::Library;
use castanet_runtime::router::Router;
use serde::Serialize;
use std::time::Duration;

/// One line of the table.
#[derive(Serialize)]
pub struct Record {
    /// Name of the element that the workers share.
    pub case: &'static str,
    /// Number of workers.
    pub workers: usize,
    /// Flows in the traffic of all of them.
    pub flows: usize,
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
    /// The cases to measure; all of them if it is empty.
    pub cases: Vec<String>,
    /// Numbers of workers, beside one.
    pub workers: Vec<usize>,
    /// Flows in the traffic.
    pub flows: usize,
    /// Runs of each case.
    pub rounds: usize,
    /// Length of one run.
    pub time: Duration,
}

/// An element that all packets pass.
struct Case {
    name: &'static str,
    element: &'static str,
    /// Packets of a flow before another flow takes its place.
    packets: u32,
}

/// More packets than a run has.
const ALWAYS: u32 = i32::MAX as u32;

/// The cases.
const CASES: [Case; 5] = [
    Case { name: "nothing", element: "Null", packets: ALWAYS },
    Case {
        name: "firewall",
        element: "Middlebox(add-stateful ip-proto udp accept, all drop)",
        packets: ALWAYS,
    },
    Case {
        name: "nat",
        element: "Middlebox(add-stateful ip-proto udp map ip-saddr 9.9.9.9 shuffle udp-sport)",
        packets: ALWAYS,
    },
    Case {
        name: "rewriter",
        element: "IPRewriter(pattern 9.9.9.9 1024-65535# - - 0 0)",
        packets: ALWAYS,
    },
    Case {
        name: "new-flows",
        element: "Middlebox(add-stateful ip-proto udp accept, all drop, CONNECTIONS 100000)",
        packets: 10,
    },
];

/// Their names.
pub fn names() -> [&'static str; CASES.len()] {
    CASES.each_ref().map(|case| case.name)
}

/// Measures every case, each number of workers in turn, round after round; `on_record` gets each
/// record as it is made.
pub fn run(
    plan: &Plan,
    library: &Library,
    on_record: &mut dyn FnMut(Record),
) -> Result<(), String> {
    for case in CASES.iter().filter(|case| is_selected(&plan.cases, case.name)) {
        let measured = measure(&plan.workers, plan.rounds, plan.time, |workers| {
            build(&configuration(case, workers, plan.flows), FRAMES, workers, true, library)
        })?;
        let reference_mpps = measured.first().map_or(f64::NAN, WorkerCount::mpps);
        for mut it in measured {
            lost_nothing(&mut it.router)?;
            on_record(Record {
                case: case.name,
                workers: it.workers,
                flows: plan.flows,
                mpps: it.mpps(),
                ns_per_packet: it.ns_per_packet(),
                reference: "one worker",
                reference_mpps,
            });
        }
    }
    Ok(())
}

/// Frames in use.
const FRAMES: usize = 4096;

/// Each packet has its connection, so there is none to be dropped.
fn lost_nothing(router: &mut Router) -> Result<(), String> {
    let drops = router.read("drops").map_err(|e| e.to_string())?;
    if drops.is_empty() { Ok(()) } else { Err(format!("packets were dropped:\n{drops}")) }
}

/// Workers with traffic of their own, all of which meets in one element.
fn configuration(case: &Case, workers: usize, flows: usize) -> String {
    let Case { element, packets, .. } = case;
    let mut text = format!("it :: {element} -> end :: Counter -> Discard;\n");
    for w in 0..workers {
        text += &format!(
            "s{w} :: FastUDPFlows(RATE 0, LIMIT -1, LENGTH 60, SRCETH 2:0:0:0:0:1,
                 DSTETH 2:0:0:0:0:2, SRCIP 10.0.0.{}, DSTIP 20.0.0.1, FLOWS {},
                 FLOWSIZE {packets}) -> Strip(14) -> CheckIPHeader -> it;
             StaticThreadSched(s{w} {w});\n",
            w + 1,
            flows / workers
        );
    }
    text
}
