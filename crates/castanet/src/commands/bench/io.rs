//! `castanet bench io`.

use super::built::{BuiltArguments, own_name};
use super::{show_progress, title};
use crate::commands::{CommandError, CommandResult, write_json, write_out};
use crate::library::library;
use crate::terminal::complain;
use castanet_bench::io::{CASES, DEVICES, Plan, Record, Reporter, run, targets};
use clap::Args;
use std::time::Duration;

/// Arguments of `castanet bench io`.
#[derive(Args)]
#[command(
    long_about = "Devices: packets through one core, beside programs that only forward.

Packets have 64 bytes. The forwarder has a core to itself, and the generator,
which takes the packets back, another. All sides of a device are started in
turn, round by round; the median of the rounds counts, of those during which
nobody else used the cores if there are any. For others, up to as many more are
made. A run is measured in eight parts; its rate is one that two of them reach,
for others can only make it slower. Rates are for a second of the
core's time, so that what other programs take away does not count.

  net_null    DPDK's device of empty packets (no IP: only `forward`)
  net_pcap    DPDK's device that repeats a capture
  net_memif   shared memory between two processes, the peer being dpdk-testpmd
  vhost       a virtual machine's network card, likewise
  kernel      Linux routing between two veth pairs
  af_packet   Castanet between the same pairs, by packet sockets
  af_xdp      the same by AF_XDP, in copy mode

Cases are paths of `castanet bench paths`. `forward` sends packets on as they came,
which between DPDK's ports, and between interfaces by AF_XDP, means without a look
at them; `counter` does so past a Counter, which means with one; `router` takes them
along the eleven elements of `castanet bench router`. net_pcap, where nothing but the
forwarder's core sets the rate, has the others too. `clients` is the router path by
AF_XDP while a hundred clients of the control socket read all handlers, as fast as
they are answered; the reference is the same without them, and all threads of the
router share the core. Otherwise the reference is what only forwards: for
DPDK dpdk-testpmd in its mode `io`, with the same burst, descriptors and mbufs;
for AF_XDP a loop of two sockets; for packet sockets Linux's routing; for that a
redirection in the driver. What Linux itself does, it does on the forwarder's
core; where Castanet and the loop forward, the generator's core also brings the
packets to them.

DPDK's devices need dpdk-testpmd, the others root. What cannot be measured is
named, with the reason, and left out.

With --built the program that `castanet build` makes of each configuration is
measured, too, in turns with this one, and has a row of its own. All programs are
built before anything is measured: the first takes about two minutes, each other
some seconds, and `castanet build` says what it needs.",
    after_help = "Examples:
  castanet bench io
  castanet bench io --device net_pcap,af_xdp --case forward --rounds 9
  castanet bench io --device net_pcap --rounds 3 --json > rows.json
  castanet bench io --seconds 2 --json > io.json
  castanet bench io --device net_pcap --case router,router-4-ways --built

Exit status: 0 something was measured, 1 nothing could be, 2 the command line is
wrong, 130 ended by Ctrl-C while a program was built."
)]
pub(crate) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Only these cases
    #[arg(long = "case", value_delimiter = ',', value_parser = CASES)]
    cases: Vec<String>,
    /// Only these devices
    #[arg(long = "device", value_delimiter = ',', value_parser = DEVICES)]
    devices: Vec<String>,
    /// Leave huge pages alone, even if the system has them
    #[arg(long)]
    no_huge: bool,
    /// Runs of each side
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Milliseconds of one run, without its start and warm-up
    #[arg(long, default_value_t = 500)]
    milliseconds: u64,
    /// The same in seconds
    #[arg(long, conflicts_with = "milliseconds")]
    seconds: Option<f64>,
    #[command(flatten)]
    built: BuiltArguments,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let milliseconds = Duration::from_millis(arguments.milliseconds);
    let seconds = arguments.seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
    let plan = Plan {
        cases: arguments.cases.clone(),
        devices: arguments.devices.clone(),
        huge: !arguments.no_huge,
        rounds: arguments.rounds.max(1),
        time: seconds.unwrap_or(milliseconds).max(Duration::from_millis(10)),
        program: own_name(),
    };
    let programs = arguments.built.programs(|| targets(&plan), &library())?;
    let mut reporter = TableReporter { json: arguments.json, titled: false, written: Ok(()) };
    let records = run(&plan, programs.as_ref(), &mut reporter);
    reporter.progress("");
    if arguments.json {
        reporter.written = write_json(&records);
    } else {
        reporter.close(&records);
    }
    match records.is_empty() {
        true => reporter.written.and(Err(CommandError::REPORTED)),
        false => reporter.written,
    }
}

/// Writes the table line by line, and on a terminal the run that is under way.
struct TableReporter {
    json: bool,
    /// Whether the table's head stands.
    titled: bool,
    written: CommandResult,
}

impl TableReporter {
    fn print(&mut self, text: &str) {
        if self.written.is_ok() {
            self.written = write_out(None, text);
        }
    }

    /// Writes the notes below the table.
    fn close(&mut self, records: &[Record]) {
        let mut text = String::new();
        if let Some(memory) = records.iter().find_map(|record| record.memory.as_ref()) {
            text += &format!("DPDK's memory: {memory}.\n");
        }
        if records.iter().any(|record| record.undisturbed == 0) {
            text += "(!) Others used the cores during every run of a side.\n";
        }
        self.print(&text);
    }
}

impl Reporter for TableReporter {
    fn progress(&mut self, doing: &str) {
        show_progress(doing);
    }

    fn row(&mut self, record: &Record) {
        if self.json {
            return;
        }
        self.progress("");
        if !std::mem::replace(&mut self.titled, true) {
            self.print(&title(&format!(
                "{:<10} {:<18} {:<7} {:>8}  {:<28} {:>8} {:>9}",
                "device", "case", "program", "Mpps", "reference", "Mpps", "of it"
            )));
        }
        let Record { device, case, program, mpps, reference, reference_mpps, .. } = record;
        let share = 100.0 * record.ratio;
        let mark = if record.undisturbed == 0 { "  (!)" } else { "" };
        self.print(&format!(
            "{device:<10} {case:<18} {program:<7} {mpps:>8.2}  {reference:<28} {reference_mpps:>8.2} {share:>7.1} %{mark}\n"
        ));
    }

    fn missing(&mut self, rows: &str, why: &str) {
        self.progress("");
        complain(format_args!("castanet: without {rows}: {why}"));
    }
}
