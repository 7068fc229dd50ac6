//! `castanet bench paths`.

use crate::commands::CommandResult;
use crate::library::library;
use castanet_bench::paths::{Plan, Record, names, run};
use clap::Args;
use clap::builder::PossibleValuesParser;

/// Arguments of `castanet bench paths`.
#[derive(Args)]
#[command(
    long_about = "Short paths for exact numbers of packets, for tools that count instructions.

One worker replays 64-byte packets from memory along each path, in simulated time, until
so many have come to its end. Nothing is calibrated and nothing is measured twice, so the
instructions of two runs differ by those of the packets that one has more:

  valgrind --tool=callgrind castanet bench paths --case router --packets 65536

`cargo xtask cost` compares these counts with a record. The time shown is that of one run,
start included; `castanet bench router` measures time.",
    after_help = "Examples:
  castanet bench paths
  castanet bench paths --case counter,tee --packets 1000000 --json"
)]
pub(crate) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Only these paths
    #[arg(long = "case", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()))]
    cases: Vec<String>,
    /// Packets for each path
    #[arg(long, default_value_t = 65_536)]
    packets: u64,
}

/// Runs the paths, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let plan = Plan { cases: arguments.cases.clone(), packets: arguments.packets.max(1) };
    super::run_and_print(arguments.json, &heading(), row, |on_record| {
        run(&plan, &library(), on_record)
    })
}

fn heading() -> String {
    super::title(&format!("{:<20} {:>10} {:>10}", "case", "packets", "ns/packet"))
}

fn row(r: &Record) -> String {
    format!("{:<20} {:>10} {:>10.2}\n", r.case, r.packets, r.ns_per_packet)
}
