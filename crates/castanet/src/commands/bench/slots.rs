//! `castanet bench slots`.

use crate::commands::CommandResult;
use crate::library::library;
use castanet_bench::slots::{BATCHES, CASES, Plan, Record, run};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::time::Duration;

/// Arguments of `castanet bench slots`.
#[derive(Args)]
#[command(
    long_about = "Packets over a slot channel to another process on a core of its own, and back.

  polled     the workers of both processes poll their rings
  sleeping   a worker sleeps while its ring is empty, and is woken

Each case is measured with an ordinary process, which joins the channel by a socket
file, and with one that is confined as a tenant's own (docs/tenants.md). As many
packets as fit into a ring are on their way all the time; each counts once when it
is back.",
    after_help = "Examples:
  castanet bench slots
  castanet bench slots --case polled --batch 64 --json"
)]
pub(crate) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Only these cases
    #[arg(long = "case", value_delimiter = ',', value_parser = PossibleValuesParser::new(CASES))]
    cases: Vec<String>,
    /// Packets that workers take at once, from 1 to 256
    #[arg(long = "batch", value_delimiter = ',', default_values_t = BATCHES)]
    batches: Vec<usize>,
    /// Lengths of packets in bytes, from 64 to 1500
    #[arg(long, value_delimiter = ',', default_values_t = [64])]
    bytes: Vec<usize>,
    /// Runs of each
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Milliseconds of one run
    #[arg(long, default_value_t = 200)]
    milliseconds: u64,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let plan = Plan {
        cases: arguments.cases.clone(),
        batches: arguments.batches.iter().map(|it| (*it).clamp(1, 256)).collect(),
        bytes: arguments.bytes.iter().map(|it| (*it).clamp(64, 1500)).collect(),
        rounds: arguments.rounds.max(1),
        time: Duration::from_millis(arguments.milliseconds.max(1)),
    };
    super::run_and_print(arguments.json, &heading(), row, |on_record| {
        run(&plan, &library(), on_record)
    })
}

fn heading() -> String {
    super::title(&format!(
        "{:<9} {:<20} {:>6} {:>6} {:>9} {:>9} {}",
        "case", "peer", "batch", "bytes", "Mpps", "target", "drops"
    ))
}

fn row(r: &Record) -> String {
    format!(
        "{:<9} {:<20} {:>6} {:>6} {:>9.3} {:>9.1} {}\n",
        r.case,
        r.peer,
        r.batch,
        r.bytes,
        r.mpps,
        r.target_mpps,
        r.drops.trim()
    )
}
