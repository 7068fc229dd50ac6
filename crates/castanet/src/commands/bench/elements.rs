//! `castanet bench elements`.

use super::show_progress;
use crate::commands::{CommandResult, write_json, write_out};
use crate::library::{library, rooms};
use castanet_bench::elements::{Record, measure, select};
use clap::Args;
use std::time::Duration;

/// Nanoseconds a packet from which on a class is marked.
const MUCH: f64 = 100.0;

/// Arguments of `castanet bench elements`.
#[derive(Args)]
#[command(
    long_about = "What a packet costs in each element class, from the examples in its manual page.

The first example in which packets come to the class is played again and again:
its packets 32 at a time, the handlers that it writes, the time that it lets go
by. Each visit of an element of the class is timed, and what other elements do
meanwhile is not counted; the median of parts of 256 packets counts, less what
reading the time-stamp counter costs. An element that makes packets, or pulls
them, has on its bill what the engine does between elements of its task, and
turns that find nothing. Packets longer than 9018 bytes are left out.

So the figures are of one element visited by itself, with its code and its state
in the cache and packets of the example's kind; `burst` says how many came at
once, for what an element does once a burst weighs more on few. What a path of
several costs, `castanet bench router` says.

Classes over 100 ns a packet are marked with (!). Those without a figure say why:
they need a device, no packet comes to them, or few.",
    after_help = "Examples:
  castanet bench elements
  castanet bench elements 'Check*' IPFilter
  castanet bench elements --milliseconds 20 --json > elements.json

Exit status: 0 every class was measured or says why not, 1 no class is called so,
2 the command line is wrong."
)]
pub(crate) struct Arguments {
    /// Only classes of these names; `*` and `?` stand for any letters
    patterns: Vec<String>,
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Milliseconds for each class
    #[arg(long, default_value_t = 150)]
    milliseconds: u64,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let classes = select(&rooms(), &arguments.patterns)?;
    let time = Duration::from_millis(arguments.milliseconds.max(1));
    let library = library();
    let (count, mut records) = (classes.len(), Vec::new());
    let mut written = if arguments.json { Ok(()) } else { write_out(None, &heading()) };
    for (n, class) in classes.into_iter().enumerate() {
        show_progress(&format!("{} of {count}: {}", n + 1, class.1.spec.class));
        let record = measure(class, &library, time);
        show_progress("");
        if !arguments.json && written.is_ok() {
            written = write_out(None, &row(&record));
        }
        records.push(record);
    }
    match arguments.json {
        true => write_json(&records),
        false => written.and_then(|()| write_out(None, &summary(&records))),
    }
}

fn heading() -> String {
    super::title(&format!(
        "{:<26} {:>10} {:>11} {:>9} {:>6}",
        "class", "ns/packet", "cycles/pkt", "packets", "burst"
    ))
}

fn row(record: &Record) -> String {
    let Record { class, packets, .. } = record;
    match (record.ns, record.cycles, record.burst) {
        (Some(ns), Some(cycles), Some(burst)) => {
            let mark = if ns > MUCH { "  (!)" } else { "" };
            format!("{class:<26} {ns:>10.1} {cycles:>11.0} {packets:>9} {burst:>6.1}{mark}\n")
        }
        _ => format!("{class:<26} {:>10} {}\n", "-", record.reason.as_deref().unwrap_or_default()),
    }
}

fn summary(records: &[Record]) -> String {
    let measured = records.iter().filter_map(|record| record.ns);
    let much = measured.clone().filter(|ns| *ns > MUCH).count();
    let (all, count) = (records.len(), measured.count());
    format!("{count} of {all} classes measured; (!) {much} take more than {MUCH} ns a packet.\n")
}
