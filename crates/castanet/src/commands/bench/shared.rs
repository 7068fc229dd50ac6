//! `castanet bench shared`.

use crate::commands::CommandResult;
use crate::library::library;
use castanet_bench::shared::{Plan, Record, names, run};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::time::Duration;

/// Arguments of `castanet bench shared`.
#[derive(Args)]
#[command(
    long_about = "What workers carry together that share connections or mappings.

Each worker makes UDP packets of its share of the flows in memory, each packet of
any of them. All meet in one element, and are counted and freed.

  nothing    packets are made, checked and freed: the limit
  firewall   a Middlebox that lets connections pass that it knows
  nat        a Middlebox that gives connections another address and port
  rewriter   an IPRewriter that does
  new-flows  the firewall, of flows of ten packets, where the table is full: for each
             connection that begins another goes

Numbers of workers run in turn, round by round, by the clock; the median of the
rounds counts, of those that had the processors to themselves if there are any.
The reference is one worker.",
    after_help = "Examples:
  castanet bench shared
  castanet bench shared --case nat,rewriter -j 2,4 --json"
)]
pub(crate) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Only these cases
    #[arg(long = "case", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()))]
    cases: Vec<String>,
    /// Numbers of workers, beside one
    #[arg(short = 'j', long, value_delimiter = ',', default_values_t = [2])]
    workers: Vec<usize>,
    /// Flows in the traffic
    #[arg(long, default_value_t = 60_000)]
    flows: usize,
    /// Runs of each number of workers
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Milliseconds of one run
    #[arg(long, default_value_t = 200)]
    milliseconds: u64,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let workers: Vec<usize> = arguments.workers.iter().map(|w| (*w).clamp(1, 64)).collect();
    let most = workers.iter().copied().max().unwrap_or(1);
    let plan = Plan {
        cases: arguments.cases.clone(),
        // Each worker has some, and none needs more ports than an address has.
        flows: arguments.flows.clamp(most, 60_000),
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
        "{:<10} {:>7} {:>8} {:>8} {:>10} {:>8}",
        "case", "workers", "flows", "Mpps", "ns/packet", "ratio"
    ))
}

fn row(r: &Record) -> String {
    format!(
        "{:<10} {:>7} {:>8} {:>8.2} {:>10.2} {:>7.2}x\n",
        r.case,
        r.workers,
        r.flows,
        r.mpps,
        r.ns_per_packet,
        r.mpps / r.reference_mpps
    )
}
