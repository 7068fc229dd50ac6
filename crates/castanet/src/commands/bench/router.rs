//! `castanet bench router`.

use super::built::{BuiltArguments, own_name, without};
use crate::commands::{CommandResult, write_out};
use crate::library::library;
use castanet_bench::router::{Bench, FEWEST_FRAMES, Plan, Record, library_of, run, targets};
use clap::Args;
use std::time::Duration;

/// Arguments of `castanet bench router`.
#[derive(Args)]
#[command(
    long_about = "Bare forwarding and the whole router path, replayed from memory.

The limit is the work of the path in a loop that was written by hand, over frames in
pages of 4 KiB; it runs in turn with the path.

With --built the program that `castanet build` makes of each path is measured,
too, in turns with this one, in a process of its own with a limit of its own. All
programs are built before anything is measured: the first takes about two minutes,
each other some seconds, and `castanet build` says what it needs. Programs that
cannot be built are named, with the reason, and left out.",
    after_help = "Examples:
  castanet bench router
  castanet bench router --case forward,router --frames 512 -j 1 --json
  castanet bench router --case router -j 1 --routes 500000 --flows 65536
  castanet bench router --case router,router-4-ways --frames 512 -j 1 --built

Exit status: 0 measured, 1 it could not be, 2 the command line is wrong, 130 ended by
Ctrl-C while a program was built."
)]
pub(super) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Only these cases: forward, router, router-4-ways
    #[arg(long = "case", value_delimiter = ',')]
    cases: Vec<String>,
    /// Frames in use
    #[arg(long, value_delimiter = ',', default_values_t = [512, 4096, 65536])]
    frames: Vec<usize>,
    /// Number of flows
    #[arg(long, default_value_t = 256)]
    flows: usize,
    /// Number of routes, of which 256 are the least
    #[arg(long, default_value_t = 512)]
    routes: u32,
    /// Numbers of workers
    #[arg(short = 'j', long, value_delimiter = ',', default_values_t = [1, 2])]
    workers: Vec<usize>,
    /// Visit each element by itself, to see what running several as one pass gains
    #[arg(long, conflicts_with = "built")]
    no_fuse: bool,
    /// Runs of each side
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Milliseconds of one run
    #[arg(long, default_value_t = 100)]
    milliseconds: u64,
    #[command(flatten)]
    built: BuiltArguments,
    /// Run both sides of the first case once for each line of standard input, for a process that
    /// measures this program beside itself
    #[arg(long, hide = true, conflicts_with = "built")]
    turns: bool,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let plan = Plan {
        frames: arguments.frames.iter().map(|f| (*f).max(FEWEST_FRAMES)).collect(),
        workers: arguments.workers.iter().map(|w| (*w).clamp(1, 64)).collect(),
        flows: arguments.flows.max(1),
        routes: arguments.routes.max(256),
        cases: arguments.cases.clone(),
        fuse: !arguments.no_fuse,
        rounds: arguments.rounds.max(1),
        time: Duration::from_millis(arguments.milliseconds.max(1)),
        program: own_name(),
    };
    if arguments.turns {
        return take_turns(&plan);
    }
    let library = library();
    let programs = arguments.built.programs(|| targets(&plan), &library_of(&library))?;
    super::run_and_print(arguments.json, &heading(), row, |on_record| {
        run(&plan, &library, programs.as_ref(), on_record, &mut without)
    })
}

/// Runs a round for each line of standard input, and answers with its result.
fn take_turns(plan: &Plan) -> CommandResult {
    let mut bench = Bench::first(plan, &library())?;
    for line in std::io::stdin().lines() {
        line.map_err(|e| e.to_string())?;
        let round = serde_json::to_string(&bench.round()?).unwrap_or_default();
        write_out(None, &(round + "\n"))?;
    }
    Ok(())
}

fn heading() -> String {
    super::title(&format!(
        "{:<14} {:<7} {:>7} {:>7} {:>10} {:>12} {:>8} {:>10} {:>8}",
        "case",
        "program",
        "frames",
        "workers",
        "ns/packet",
        "cycles/pkt",
        "Mpps",
        "limit ns",
        "of limit"
    ))
}

fn row(r: &Record) -> String {
    format!(
        "{:<14} {:<7} {:>7} {:>7} {:>10.2} {:>12.1} {:>8.2} {:>10.2} {:>7.2}x\n",
        r.case,
        r.program,
        r.frames,
        r.workers,
        r.ns_per_packet,
        r.cycles_per_packet,
        r.mpps,
        r.limit_ns_per_packet,
        r.ratio
    )
}
