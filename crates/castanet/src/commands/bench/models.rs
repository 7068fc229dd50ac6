//! `castanet bench models`.

use crate::commands::{CommandResult, write_json, write_out};
use crate::library::library;
use castanet_bench::models::{Plan, Record, names, run};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::time::Duration;

/// Arguments of `castanet bench models`.
#[derive(Args)]
#[command(
    long_about = "Ways to divide one path between workers (FastClick paper, 5.3).

Packets are made in memory, go along the eleven elements of `castanet bench
router`, and are freed at the end. Between path and end stands nothing, a Queue
that is pulled from, or a Pipeliner. Packets that find a queue full are dropped;
what comes to the end counts.

  full-push            one worker takes each packet all the way
  queue                a Queue and who pulls from it on the same worker
  queue-2-workers      the same, pulled from by another worker
  pipeliner            a Pipeliner of another worker
  full-push-2-workers  two workers, each with packets of its own

All run in turn, round by round; the median of the rounds counts, of those that
had the processor to themselves if there are any. The reference is full-push.",
    after_help = "Examples:
  castanet bench models
  castanet bench models --case queue,pipeliner --json"
)]
pub(crate) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Only these models, beside full-push
    #[arg(long = "case", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()))]
    cases: Vec<String>,
    /// Runs of each model
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Milliseconds of one run
    #[arg(long, default_value_t = 200)]
    milliseconds: u64,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let plan = Plan {
        cases: arguments.cases.clone(),
        rounds: arguments.rounds.max(1),
        time: Duration::from_millis(arguments.milliseconds.max(1)),
    };
    let records = run(&plan, &library())?;
    match arguments.json {
        true => write_json(&records),
        false => write_out(None, &(heading() + &records.iter().map(row).collect::<String>())),
    }
}

fn heading() -> String {
    super::title(&format!(
        "{:<20} {:>7} {:>8} {:>10} {:>7} {:>8}",
        "case", "workers", "Mpps", "ns/packet", "lost", "ratio"
    ))
}

fn row(r: &Record) -> String {
    format!(
        "{:<20} {:>7} {:>8.2} {:>10.2} {:>6.1}% {:>7.2}x\n",
        r.case,
        r.workers,
        r.mpps,
        r.ns_per_packet,
        100.0 * r.lost,
        r.mpps / r.reference_mpps
    )
}
