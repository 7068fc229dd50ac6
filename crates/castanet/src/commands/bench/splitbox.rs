//! `castanet bench splitbox`.

use crate::commands::{CommandResult, write_json, write_out};
use crate::library::library;
use crate::terminal::complain;
use castanet_bench::splitbox::{NAMES, Plan, RULES, Record, Reporter, run};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::time::Duration;

/// Arguments of `castanet bench splitbox`.
#[derive(Args)]
#[command(
    long_about = "What the parties of SplitBox carry: a firewall whose rules the clouds cannot read.

All parties run in one process, two processors among them, and each packet takes its
whole way: datagrams are sealed and opened, shares added up and put together. Packets
try all rules, and the last one lets them pass. The cycles of each element give the cost
of each party, which has cores of its own; the slowest one gives the bandwidth.

  by-projection  one hash for each projection of the matches, BLAKE3 or SHA-1
  as-written     one SHA-1 for each match that is tried, as in the paper
  delay          delays from entry to client, 60 rules, at shares of the load that one
                 worker carries for all parties together

Beside them: an IPFilter and a Middlebox with the same rules, and the paper's bandwidth
where its text states it. Cases that need more than 1 GB for rows, and more than 1000
rules as written, are left out, and standard error says so.",
    after_help = "Examples:
  castanet bench splitbox
  castanet bench splitbox --case by-projection --rules 60,10000 --blinds 1024 -j 1 --json"
)]
pub(crate) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Only these cases
    #[arg(long = "case", value_delimiter = ',', value_parser = PossibleValuesParser::new(NAMES))]
    cases: Vec<String>,
    /// Numbers of rules
    #[arg(long, value_delimiter = ',', default_values_t = RULES)]
    rules: Vec<usize>,
    /// Numbers of blinds
    #[arg(long, value_delimiter = ',', default_values_t = [64, 1024, 65_536])]
    blinds: Vec<u64>,
    /// Numbers of workers
    #[arg(short = 'j', long, value_delimiter = ',', default_values_t = [1, 2])]
    workers: Vec<usize>,
    /// Bytes of an IP packet
    #[arg(long, default_value_t = 1000)]
    packet: usize,
    /// Loads at which delays are measured, in percent
    #[arg(long, value_delimiter = ',', default_values_t = [10, 30, 50, 70, 90])]
    loads: Vec<u64>,
    /// Runs of each case
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Milliseconds of one run
    #[arg(long, default_value_t = 100)]
    milliseconds: u64,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let plan = Plan {
        cases: arguments.cases.clone(),
        rules: arguments.rules.iter().map(|it| (*it).clamp(1, 100_000)).collect(),
        blinds: arguments.blinds.iter().map(|it| (*it).clamp(64, 1 << 24)).collect(),
        workers: arguments.workers.iter().map(|it| (*it).clamp(1, 64)).collect(),
        packet: arguments.packet.clamp(64, 8000),
        loads: arguments.loads.iter().map(|it| (*it).clamp(1, 100)).collect(),
        rounds: arguments.rounds.max(1),
        time: Duration::from_millis(arguments.milliseconds.max(1)),
    };
    let mut reporter = TableReporter { json: arguments.json, records: Vec::new(), written: Ok(()) };
    reporter.print(&heading());
    let done = run(&plan, &library(), &mut reporter);
    super::show_progress("");
    done?;
    match arguments.json {
        true => write_json(&reporter.records),
        false => reporter.written,
    }
}

/// Writes the table line by line, and on a terminal the case that is under way.
struct TableReporter {
    json: bool,
    records: Vec<Record>,
    written: CommandResult,
}

impl TableReporter {
    fn print(&mut self, text: &str) {
        if !self.json && self.written.is_ok() {
            self.written = write_out(None, text);
        }
    }
}

impl Reporter for TableReporter {
    fn progress(&mut self, doing: &str) {
        super::show_progress(doing);
    }

    fn row(&mut self, record: Record) {
        self.progress("");
        self.print(&row(&record));
        self.records.push(record);
    }

    fn missing(&mut self, case: &str, why: &str) {
        self.progress("");
        complain(format_args!("castanet: without {case}: {why}"));
    }
}

fn heading() -> String {
    super::title(&format!(
        "{:<14} {:>6} {:>6} {:>6} {:>3} {:>9} {:>10} {:>9} {:>7} {:>9} {:>9} {:>7} {:>5} {:>8} {:>8}",
        "case",
        "rules",
        "hash",
        "l",
        "j",
        "entry ns",
        "processor",
        "client",
        "Gbit/s",
        "IPFilter",
        "Middlebox",
        "paper",
        "load",
        "p50 us",
        "p99 us"
    ))
}

fn row(r: &Record) -> String {
    let number = |it: Option<f64>| it.map_or("-".to_owned(), |it| format!("{it:.1}"));
    let load = r.load.map_or("-".to_owned(), |it| format!("{it}%"));
    format!(
        "{:<14} {:>6} {:>6} {:>6} {:>3} {:>9.0} {:>10.0} {:>9.0} {:>7.2} {:>9} {:>9} {:>7} {load:>5} {:>8} {:>8}\n",
        r.case,
        r.rules,
        r.hash,
        r.l,
        r.workers,
        r.entry_ns,
        r.processor_ns,
        r.client_ns,
        r.gbps,
        number(r.plain_gbps),
        number(r.middlebox_gbps),
        number(r.paper_gbps),
        number(r.p50_us),
        number(r.p99_us),
    )
}
