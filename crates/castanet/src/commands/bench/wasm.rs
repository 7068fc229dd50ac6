//! `castanet bench wasm`.

use crate::commands::{CommandResult, write_json, write_out};
use crate::library::library;
use castanet_bench::wasm::{CallRecord, Plan, Record, names, run, run_calls};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use std::time::Duration;

/// Arguments of `castanet bench wasm`.
#[derive(Args)]
#[command(
    long_about = "What a packet costs in an element that is a WebAssembly module, beside a native one that
does the same, on one worker in memory.

  ttl        one hop less, with the checksum: DecIPTTL
  firewall   four TCP ports that are denied: IPFilter
  scan       a text that is looked for in the whole packet of 50 bytes: Search

The path is Strip, CheckIPHeader, the element and Unstrip; it is measured without an
element, with the native one and with the module, in turn. The costs of the elements
are what the path costs more with them. Native elements in a row may run as one pass
(fused), or may not. The second table has the parts of a call, with the three ways to
limit its time: by counting instructions (fuel, which WasmElement does), by a clock of
another thread (epoch), or not at all.",
    after_help = "Examples:
  castanet bench wasm
  castanet bench wasm --case ttl --burst 32 --json"
)]
pub(crate) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Only these cases
    #[arg(long = "case", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()))]
    cases: Vec<String>,
    /// Packets in a batch
    #[arg(long = "burst", value_delimiter = ',', default_values_t = [32])]
    bursts: Vec<usize>,
    /// Frames in rotation
    #[arg(long, default_value_t = 512)]
    frames: usize,
    /// Runs of each side
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Milliseconds of one run
    #[arg(long, default_value_t = 50)]
    milliseconds: u64,
}

/// The records of both tables.
#[derive(Serialize)]
struct Records {
    elements: Vec<Record>,
    calls: Vec<CallRecord>,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let plan = Plan {
        cases: arguments.cases.clone(),
        bursts: arguments.bursts.iter().map(|burst| (*burst).clamp(1, 256)).collect(),
        frames: arguments.frames.clamp(256, 1 << 20),
        rounds: arguments.rounds.max(1),
        time: Duration::from_millis(arguments.milliseconds.max(1)),
    };
    let mut records = Records { elements: Vec::new(), calls: Vec::new() };
    run(&plan, &library(), &mut |record| records.elements.push(record))?;
    run_calls(&plan, &mut |record| records.calls.push(record))?;
    if arguments.json {
        return write_json(&records);
    }
    let elements = records.elements.iter().map(element_row);
    let calls = records.calls.iter().map(call_row);
    let text = [element_heading()].into_iter().chain(elements);
    let text: String = text.chain([call_heading()]).chain(calls).collect();
    write_out(None, &text)
}

fn element_heading() -> String {
    super::title(&format!(
        "{:<10} {:>6} {:>6} {:>8} {:>10} {:>8} {:>10} {:>14}",
        "case", "fused", "burst", "path ns", "native ns", "wasm ns", "of native", "path of native"
    ))
}

fn element_row(r: &Record) -> String {
    format!(
        "{:<10} {:>6} {:>6} {:>8.2} {:>10.2} {:>8.2} {:>9.2}x {:>13.2}x\n",
        r.case,
        if r.fused { "yes" } else { "no" },
        r.burst,
        r.path_ns,
        r.native_ns,
        r.wasm_ns,
        r.ratio,
        r.path_ratio
    )
}

fn call_heading() -> String {
    let columns = format!(
        "{:<10} {:>8} {:>6} {:>10} {:>8} {:>11} {:>14}",
        "module", "meter", "burst", "copy in ns", "call ns", "copy out ns", "empty call ns"
    );
    format!("\n{}", super::title(&columns))
}

fn call_row(r: &CallRecord) -> String {
    format!(
        "{:<10} {:>8} {:>6} {:>10.2} {:>8.2} {:>11.2} {:>14.1}\n",
        r.module, r.meter, r.burst, r.copy_in_ns, r.call_ns, r.copy_out_ns, r.empty_call_ns
    )
}
