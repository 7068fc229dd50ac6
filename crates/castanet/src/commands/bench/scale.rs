//! `castanet bench scale`.

use crate::commands::CommandResult;
use crate::library::library;
use castanet_bench::scale::{Plan, Record, TracePlan, TraceRecord, names, run, run_bursts};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::time::Duration;

/// Arguments of `castanet bench scale`.
#[derive(Args)]
#[command(
    long_about = "What workers carry together that visit the same elements.

Each worker makes 64-byte packets in memory. All meet at the beginning of one path, as
those of a device with a queue for each worker, and are counted and freed at its end.
The paths are those of `castanet bench paths`; in `queue-each` each worker has a Queue
of its own before the end.

Numbers of workers run in turn, round by round, by the clock; the median of the
rounds counts, of those that had the processors to themselves if there are any.
The reference is one worker.

With --bursts, nothing is measured: each worker makes exactly so many bursts, for tools
that trace memory. `cargo xtask contention` counts the cache lines that then move between
workers, for numbers of workers that need not have cores.",
    after_help = "Examples:
  castanet bench scale
  castanet bench scale --case router,nat -j 2,4,8 --json"
)]
pub(crate) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Only these paths
    #[arg(long = "case", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()))]
    cases: Vec<String>,
    /// Numbers of workers, beside one; without it 2, 4, 8 and 16 as far as there are cores
    #[arg(short = 'j', long, value_delimiter = ',')]
    workers: Vec<usize>,
    /// Runs of each number of workers
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Milliseconds of one run
    #[arg(long, default_value_t = 100)]
    milliseconds: u64,
    /// Bursts of each worker, instead of rounds by the clock
    #[arg(long, conflicts_with_all = ["rounds", "milliseconds"])]
    bursts: Option<u64>,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut workers: Vec<usize> = arguments.workers.iter().map(|w| (*w).clamp(1, 64)).collect();
    if workers.is_empty() {
        workers = [2, 4, 8, 16].into_iter().filter(|&n| n <= cores).collect();
    }
    let cases = arguments.cases.clone();
    if let Some(bursts) = arguments.bursts {
        let plan = TracePlan { cases, workers, bursts: bursts.max(1) };
        return super::run_and_print(arguments.json, &trace_heading(), trace_row, |on_record| {
            run_bursts(&plan, &library(), on_record)
        });
    }
    let plan = Plan {
        cases,
        workers,
        rounds: arguments.rounds.max(1),
        time: Duration::from_millis(arguments.milliseconds.max(1)),
    };
    super::run_and_print(arguments.json, &heading(), row, |on_record| {
        run(&plan, &library(), on_record)
    })
}

fn heading() -> String {
    super::title(&format!(
        "{:<20} {:>7} {:>8} {:>10} {:>8}",
        "case", "workers", "Mpps", "ns/packet", "ratio"
    ))
}

fn row(r: &Record) -> String {
    format!(
        "{:<20} {:>7} {:>8.2} {:>10.2} {:>7.2}x\n",
        r.case,
        r.workers,
        r.mpps,
        r.ns_per_packet,
        r.mpps / r.reference_mpps
    )
}

fn trace_heading() -> String {
    super::title(&format!("{:<20} {:>7} {:>10}", "case", "workers", "packets"))
}

fn trace_row(r: &TraceRecord) -> String {
    format!("{:<20} {:>7} {:>10}\n", r.case, r.workers, r.packets)
}
