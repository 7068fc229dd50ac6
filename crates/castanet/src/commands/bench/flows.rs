//! `castanet bench flows`.

use crate::commands::CommandResult;
use castanet_bench::flows::{Plan, Record, run};
use clap::Args;
use std::time::Duration;

/// Arguments of `castanet bench flows`.
#[derive(Args)]
#[command(
    long_about = "A table of flows, such as connection tracking and NAT keep.

  insert    looks for flows that are not there, a burst of 32 at once, and adds
            them, to an empty table until all are there
  find      finds flows in no order, a burst at once, counts a packet of
            each, and puts its end off
  find-one  the same, one by one
  absent    looks for flows that are not there, a burst at once
  expire    ends all flows, whose time is over, a burst at once

The reference is a hash map, grown as it needs, in which flows end by a scan of
all; it is asked one by one. With several workers each has a table of its own
with its share of the flows. Times are of a flow and include making its key;
the longest time is that of a burst. With 32 million flows the program takes up
to 3.3 GB of memory on one worker.",
    after_help = "Examples:
  castanet bench flows
  castanet bench flows --flows 1000000 -j 1 --json"
)]
pub(crate) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Flows in all tables together
    #[arg(long, value_delimiter = ',', default_values_t = [8_192, 1_048_576, 33_554_432])]
    flows: Vec<usize>,
    /// Numbers of workers
    #[arg(short = 'j', long, value_delimiter = ',', default_values_t = [1, 2])]
    workers: Vec<usize>,
    /// Runs of each side
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Milliseconds that a case runs at least
    #[arg(long, default_value_t = 100)]
    milliseconds: u64,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let plan = Plan {
        // As many flows as there are numbers for.
        flows: arguments.flows.iter().map(|n| (*n).clamp(64, 1 << 30)).collect(),
        workers: arguments.workers.iter().map(|w| (*w).clamp(1, 64)).collect(),
        rounds: arguments.rounds.max(1),
        time: Duration::from_millis(arguments.milliseconds.max(1)),
    };
    super::run_and_print(arguments.json, &heading(), row, |on_record| {
        run(&plan, on_record);
        Ok(())
    })
}

fn heading() -> String {
    super::title(&format!(
        "{:<10} {:>10} {:>7} {:>8} {:>8} {:>11} {:>10} {:>8} {:>12}",
        "case",
        "flows",
        "workers",
        "ns/flow",
        "cycles",
        "longest us",
        "bytes/flow",
        "map ns",
        "map longest"
    ))
}

fn row(r: &Record) -> String {
    format!(
        "{:<10} {:>10} {:>7} {:>8.1} {:>8.0} {:>11.1} {:>10.1} {:>8.1} {:>12.1}\n",
        r.case,
        r.flows,
        r.workers,
        r.ns,
        r.cycles,
        r.longest_us,
        r.bytes,
        r.reference_ns,
        r.reference_longest_us
    )
}
