//! `castanet bench shared-packets`.

use crate::commands::CommandResult;
use crate::library::library;
use castanet_bench::shared_packets::{Plan, Record, names, run};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::time::Duration;

/// Arguments of `castanet bench shared-packets`.
#[derive(Args)]
#[command(
    long_about = "What a packet costs that is shared, kept or made, on one worker in memory.

  tee-2, tee-4     packets of a ring, into which bytes are copied as from a device, and
                   their clones by a Tee of 2 or 4
  tee-write        the same of 2, where an element writes to one of both
  queue            packets of the ring by a Queue and an Unqueue
  replay           a trace that ReplayUnqueue replays
  replay-write     the same, where an element writes to each packet
  replay-router    the same on the path of castanet bench router
  replay-queue     the same by a Queue and an Unqueue
  infinite-source  packets of an InfiniteSource
  udp-flows        packets of FastUDPFlows

The reference, in turn with the path, is one copy of the same bytes by hand, over as
many frames. The path of a ring copies each packet once, too. No packet may be
dropped, and each must come to each end of its path.",
    after_help = "Examples:
  castanet bench shared-packets
  castanet bench shared-packets --case tee-2,replay-write --bytes 64 --json"
)]
pub(crate) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Only these cases
    #[arg(long = "case", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()))]
    cases: Vec<String>,
    /// Lengths of packets in bytes, from 64 to 1500
    #[arg(long, value_delimiter = ',', default_values_t = [64, 512, 1500])]
    bytes: Vec<usize>,
    /// Frames in rotation
    #[arg(long, value_delimiter = ',', default_values_t = [512])]
    frames: Vec<usize>,
    /// Runs of each side
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Milliseconds of one run
    #[arg(long, default_value_t = 50)]
    milliseconds: u64,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let plan = Plan {
        cases: arguments.cases.clone(),
        bytes: arguments.bytes.iter().map(|b| (*b).clamp(64, 1500)).collect(),
        frames: arguments.frames.iter().map(|f| (*f).clamp(64, 1 << 20)).collect(),
        rounds: arguments.rounds.max(1),
        time: Duration::from_millis(arguments.milliseconds.max(1)),
    };
    super::run_and_print(arguments.json, &heading(), row, |on_record| {
        run(&plan, &library(), on_record)
    })
}

fn heading() -> String {
    super::title(&format!(
        "{:<15} {:>6} {:>7} {:>10} {:>8} {:>8}",
        "case", "bytes", "frames", "ns/packet", "copy ns", "of copy"
    ))
}

fn row(r: &Record) -> String {
    format!(
        "{:<15} {:>6} {:>7} {:>10.2} {:>8.2} {:>7.2}x\n",
        r.case, r.bytes, r.frames, r.ns_per_packet, r.copy_ns, r.ratio
    )
}
