//! `castanet capture`: packets at places of a running graph.

mod sink;

use super::instances::Attachment;
use crate::commands::CommandResult;
use crate::commands::line_editor::pause;
use crate::observe::SessionNumber;
use crate::observe::capture::{CaptureAnswer, CaptureQuery};
use crate::observe::packet::FilterText;
use crate::terminal::complain;
use clap::Args;
use sink::CaptureSink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval at which packets are fetched, while there are none.
const EVERY: Duration = Duration::from_millis(20);

/// Arguments of `castanet capture`.
#[derive(Args, Clone)]
#[command(after_help = "Examples:
  castanet capture                           packets that devices receive and send, one a line
  castanet capture eth0 | wireshark -k -i -  those of an interface, live in Wireshark
  castanet capture -w c.pcapng 'rt[1]' q     those of an output of rt and of the input of q
  castanet capture --dropped                 those that are dropped anywhere
  castanet capture --dropped=expired -n 10   those that are dropped for a reason
  castanet capture -e 'udp && port 53' -w d.pcapng --ring-size 100 --ring-files 10

A captured element is visited by itself, past compiled chains. Copying takes at most an eighth of a \
worker's time: packets beyond that are counted, and the count is printed at the end.")]
pub(crate) struct CaptureArguments {
    /// ELEMENT (its inputs), ELEMENT[OUTPUT], [INPUT]ELEMENT, or an interface; where packets enter and
    /// leave the graph if not given
    #[arg(value_name = "PLACE")]
    places: Vec<String>,
    /// Packets that are dropped, for this reason if one is given
    #[arg(long, value_name = "REASON", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    dropped: Option<String>,
    /// Only packets that match this pattern of IPFilter
    #[arg(
        short = 'e',
        long,
        value_name = "PATTERN",
        default_value = "",
        hide_default_value = true
    )]
    pattern: String,
    /// Only packets that match this expression of tcpdump
    #[arg(long, value_name = "EXPRESSION")]
    tcpdump: Option<String>,
    /// The instance, by its name or the path of its control socket, where there are several
    #[arg(short, long, value_name = "NAME|PATH")]
    pub(super) instance: Option<String>,
    /// End after so many packets
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS")]
    duration: Option<f64>,
    /// Bytes of a packet that are copied
    #[arg(short, long, default_value_t = 65_535, value_name = "BYTES")]
    snaplen: usize,
    /// Write a pcapng file; `-` for standard output, which is also so where that is no terminal
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Begin another file after so many megabytes: FILE_00001, FILE_00002 ...
    #[arg(long, value_name = "MB", requires = "write",
          value_parser = clap::value_parser!(u64).range(1..))]
    ring_size: Option<u64>,
    /// Begin another file after so many seconds
    #[arg(long, value_name = "SECONDS", requires = "write",
          value_parser = clap::value_parser!(u64).range(1..))]
    ring_time: Option<u64>,
    /// Keep the last N files only
    #[arg(long, value_name = "N", requires = "write",
          value_parser = clap::value_parser!(u64).range(1..))]
    ring_files: Option<u64>,
    /// Print one line a packet, also where standard output is no terminal
    #[arg(long, conflicts_with_all = ["write", "json"])]
    text: bool,
    /// Print a JSON object for each packet
    #[arg(long, conflicts_with = "write")]
    pub(super) json: bool,
}

/// Captures packets of an instance until it is told to end.
pub(super) fn run(
    it: &mut Attachment,
    arguments: &CaptureArguments,
    json: bool,
    stop: &AtomicBool,
) -> CommandResult {
    let duration = arguments.duration.map(|it| super::commands::interval(it, 0.0)).transpose()?;
    let query = serde_json::to_string(&arguments.query()).map_err(|error| error.to_string())?;
    let SessionNumber { session } = it.read_json(&format!("capture start {query}"))?;
    let deadline = duration.map(|duration| Instant::now() + duration);
    // A file is made only now: a wrong place must not empty an old one.
    let mut sink = CaptureSink::new(arguments, json);
    let form = match &sink {
        Ok(sink) if sink.has_text() => "",
        _ => " bytes",
    };
    let result = match &mut sink {
        Ok(sink) => follow(it, &format!("capture next {session}{form}"), deadline, sink, stop),
        Err(_) => Ok(()),
    };
    // The router may have gone.
    let rest = it.read_json::<CaptureAnswer>(&format!("capture stop {session}{form}"));
    let mut sink = sink?;
    result?;
    let rest = rest?;
    sink.take(&rest.packets)?;
    let packets = sink.finish()?;
    if sink.is_file() {
        complain(format_args!("castanet: {packets} packets captured"));
    }
    let (missed, overflowed) = (rest.missed, rest.overflowed);
    if missed > 0 {
        complain(format_args!("castanet: {missed} packets came too fast to be copied"));
    }
    if overflowed > 0 {
        complain(format_args!("castanet: {overflowed} packets came too fast to be fetched"));
    }
    Ok(())
}

/// Fetches packets by the handler `next` until all that were asked for are there, or the user wishes that it ends.
fn follow(
    it: &mut Attachment,
    next: &str,
    deadline: Option<Instant>,
    sink: &mut CaptureSink,
    stop: &AtomicBool,
) -> CommandResult {
    loop {
        let is_over = stop.load(Ordering::Relaxed)
            || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let answer: CaptureAnswer = it.read_json(next)?;
        let is_empty = answer.packets.is_empty();
        if !sink.take(&answer.packets)? || is_over || is_empty && answer.is_full {
            return Ok(());
        }
        if is_empty {
            pause(EVERY, stop);
        }
    }
}

impl CaptureArguments {
    /// Whether files take turns.
    fn is_ring(&self) -> bool {
        self.ring_size.is_some() || self.ring_time.is_some() || self.ring_files.is_some()
    }

    fn query(&self) -> CaptureQuery {
        let filter = FilterText { pattern: self.pattern.clone(), tcpdump: self.tcpdump.clone() };
        // With --dropped, places are elements that drop.
        let dropped = self.dropped.is_some();
        let (places, elements) = match dropped {
            true => (Vec::new(), self.places.clone()),
            false => (self.places.clone(), Vec::new()),
        };
        CaptureQuery {
            filter,
            places,
            dropped,
            elements,
            reason: self.dropped.clone().filter(|reason| !reason.is_empty()),
            packets: self.count,
            snap_len: self.snaplen,
        }
    }
}
