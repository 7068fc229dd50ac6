//! `castanet bench observe`.

use crate::commands::CommandResult;
use crate::library::library;
use castanet_bench::observe::{Plan, Record, names, run};
use castanet_bench::router::FEWEST_FRAMES;
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::time::Duration;

/// Arguments of `castanet bench observe`.
#[derive(Args)]
#[command(
    long_about = "The cost of looking at a running router, on the router path.

One worker routes packets that are replayed from memory. The control thread looks at
it, on another core where there is one:

  counts     counters of all elements, once a second, as a control socket reads them
  top        the same and samples of cost, once a second: `castanet top`, the web view
  metrics    counters, and all handlers that are metrics, once a second: a scrape
  drops      reasons and examples, once a second: `castanet drops`
  handlers   all handlers of all elements, one after another, 5000 a second: as many as
             an instance answers to all of its clients together

Runs with and without observation take turns; the processor time of the worker counts.
The median of the rounds counts, of those that had the processor to themselves if there
are any.",
    after_help = "Examples:
  castanet bench observe
  castanet bench observe --case top --rounds 15 --json"
)]
pub(crate) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Only these cases
    #[arg(long = "case", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()))]
    cases: Vec<String>,
    /// Frames in use
    #[arg(long, default_value_t = 4096)]
    frames: usize,
    /// Runs of each side
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Milliseconds of one run
    #[arg(long, default_value_t = 1500)]
    milliseconds: u64,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let plan = Plan {
        cases: arguments.cases.clone(),
        frames: arguments.frames.max(FEWEST_FRAMES),
        rounds: arguments.rounds.max(1),
        time: Duration::from_millis(arguments.milliseconds.max(1)),
    };
    super::run_and_print(arguments.json, &heading(), row, |on_record| {
        run(&plan, &library(), on_record)
    })
}

fn heading() -> String {
    super::title(&format!(
        "{:<10} {:>10} {:>10} {:>8} {:>10}",
        "case", "ns/packet", "off", "ratio", "looks/s"
    ))
}

fn row(r: &Record) -> String {
    format!(
        "{:<10} {:>10.2} {:>10.2} {:>7.3}x {:>10.0}\n",
        r.case, r.ns_per_packet, r.off_ns_per_packet, r.ratio, r.looks_per_second
    )
}
