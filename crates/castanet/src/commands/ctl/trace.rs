//! `castanet trace`: what elements do to the next packets.

mod steps;
mod text;

use super::instances::Attachment;
use super::packet_file::{BlockFile, PacketFile};
use crate::commands::line_editor::pause;
use crate::commands::{CommandError, CommandResult};
use crate::load::io_error_text;
use crate::observe::SessionNumber;
use crate::observe::packet::FilterText;
use crate::observe::trace::{StepRecord, TraceAnswer, TraceQuery};
use crate::terminal::{colours_on_stdout, complain, say_on};
use clap::Args;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use steps::TracedPackets;

/// Interval at which steps are fetched.
const EVERY: Duration = Duration::from_millis(50);

/// Arguments of `castanet trace`.
#[derive(Args, Clone)]
#[command(after_help = "Examples:
  castanet trace                             the next 5 packets of any source
  castanet trace -n 1 icmp                   the next ICMP packet
  castanet trace 'dst host 10.0.0.7 && tcp'  packets to a host
  castanet trace --from in0 --tcpdump arp    ARP of one source
  castanet trace -n 100 -w t.pcapng udp      each step as a packet, for Wireshark

A traced packet goes alone, from element to element, past compiled chains; all others go on in bursts. \
Where packets come too fast, only some are looked at: how many were not is printed at the end.")]
pub(crate) struct TraceArguments {
    /// The packets: a pattern of IPFilter; all packets if not given
    #[arg(value_name = "PATTERN")]
    pattern: Vec<String>,
    /// Only packets that match this expression of tcpdump
    #[arg(long, value_name = "EXPRESSION")]
    tcpdump: Option<String>,
    /// The instance, by its name or the path of its control socket, where there are several
    #[arg(short, long, value_name = "NAME|PATH")]
    pub(super) instance: Option<String>,
    /// Number of packets
    #[arg(short = 'n', long, default_value_t = 5, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Only packets of this source
    #[arg(long, value_name = "ELEMENT")]
    from: Option<String>,
    /// Seconds to wait for packets that elements keep, once the last one has come
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    wait: f64,
    /// Bytes of a packet that are copied
    #[arg(short, long, default_value_t = 512, value_name = "BYTES")]
    snaplen: usize,
    /// Write each step as a packet of a pcapng file, with the way in its comment
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print a JSON object for each step
    #[arg(long)]
    pub(super) json: bool,
}

/// Traces packets of an instance.
pub(super) fn run(
    it: &mut Attachment,
    arguments: &TraceArguments,
    json: bool,
    stop: &AtomicBool,
) -> CommandResult {
    let wait = super::commands::interval(arguments.wait, 0.0)?;
    let filter =
        FilterText { pattern: arguments.pattern.join(" "), tcpdump: arguments.tcpdump.clone() };
    let query = TraceQuery {
        filter,
        from: arguments.from.clone(),
        packets: arguments.count,
        snap_len: arguments.snaplen,
    };
    let query = serde_json::to_string(&query).map_err(|error| error.to_string())?;
    let SessionNumber { session } = it.read_json(&format!("trace start {query}"))?;
    // A file is made only now: a wrong pattern must not empty an old one.
    let mut output = TraceOutput::new(arguments, json);
    let result = match &mut output {
        Ok(output) => follow(it, session, wait, output, stop),
        Err(_) => Ok(()),
    };
    // The router may have gone.
    let rest = it.read_json::<TraceAnswer>(&format!("trace stop {session}"));
    let mut output = output?;
    result?;
    output.take(rest?)?;
    output.finish()
}

/// Fetches steps until all packets have come to their end, or nothing comes any more.
fn follow(
    it: &mut Attachment,
    session: u64,
    wait: Duration,
    output: &mut TraceOutput,
    stop: &AtomicBool,
) -> CommandResult {
    let mut last = Instant::now();
    loop {
        let answer: TraceAnswer = it.read_json(&format!("trace next {session}"))?;
        let (more, remaining) = (!answer.steps.is_empty(), answer.remaining);
        if more {
            last = Instant::now();
        }
        if !output.take(answer)? {
            return Ok(());
        }
        let is_quiet = output.packets.unfinished() == 0 || last.elapsed() > wait;
        let is_done = remaining == 0 && is_quiet;
        if is_done || stop.load(Ordering::Relaxed) || (!more && !pause(EVERY, stop)) {
            return Ok(());
        }
    }
}

/// Output of a trace.
struct TraceOutput {
    packets: TracedPackets,
    json: bool,
    file: Option<(PathBuf, PacketFile<BufWriter<BlockFile>>)>,
    missed: u64,
    lost_steps: u64,
}

impl TraceOutput {
    fn new(arguments: &TraceArguments, json: bool) -> Result<TraceOutput, CommandError> {
        let file = match &arguments.write {
            None => None,
            Some(path) => {
                let failed = |error| file_error(path, &error);
                let file = BlockFile::create(path).map_err(failed)?;
                let file = PacketFile::new(file, arguments.snaplen);
                Some((path.clone(), file.map_err(failed)?))
            }
        };
        let json = json || arguments.json;
        let packets = TracedPackets::default();
        Ok(TraceOutput { packets, json, file, missed: 0, lost_steps: 0 })
    }

    /// Prints steps, packet by packet; `false` if the reader has gone.
    fn take(&mut self, answer: TraceAnswer) -> Result<bool, CommandError> {
        (self.missed, self.lost_steps) = (answer.missed, answer.lost_steps);
        for step in answer.steps {
            if self.json {
                let line = serde_json::to_string(&step).unwrap_or_default();
                if !say_on(&(line + "\n"))? {
                    return Ok(false);
                }
            }
            if let Some(steps) = self.packets.add(step)
                && !self.print(&steps)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Prints a packet with all its steps.
    fn print(&mut self, steps: &[StepRecord]) -> Result<bool, CommandError> {
        if let Some((path, file)) = &mut self.file {
            let written = steps::write(file, steps).and_then(|()| file.flush());
            written.map_err(|error| {
                file.cut();
                file_error(path, &error)
            })?;
        }
        match self.json || self.file.is_some() {
            true => Ok(true),
            false => Ok(say_on(&text::packet(steps, colours_on_stdout()))?),
        }
    }

    /// Prints packets that have not come to their end, and what was missed.
    fn finish(mut self) -> CommandResult {
        for steps in self.packets.take_unfinished() {
            if !self.print(&steps)? {
                return Ok(());
            }
        }
        if let Some((path, _)) = &self.file {
            let count = self.packets.count();
            complain(format_args!("castanet: {count} packets in {}", path.display()));
        } else if self.packets.count() == 0 {
            complain("castanet: no packet came");
        }
        if self.missed > 0 {
            let missed = self.missed;
            complain(format_args!("castanet: {missed} packets came too fast to be looked at"));
        }
        if self.lost_steps > 0 {
            let lost = self.lost_steps;
            complain(format_args!("castanet: {lost} steps came too fast to be fetched"));
        }
        Ok(())
    }
}

/// The error about a file that cannot be written.
pub(super) fn file_error(path: &std::path::Path, error: &std::io::Error) -> CommandError {
    format!("{}: {}", path.display(), io_error_text(error)).into()
}
