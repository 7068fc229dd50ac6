//! `FromTcpdump`: makes packets from the output of tcpdump.

use super::emit_switch::EmitSwitch;
use super::from_ip_summary_dump::mark;
use super::summary::annotate;
use super::text_source::{LINES_A_PACKET, TextSource};
use crate::text_file::LineReader;
use castanet_element::args::io_error_text;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use castanet_wire::tcpdump::Reader;

/// Makes packets from the lines that tcpdump has printed to FILENAME, `-` for standard input.
///
/// The element reads the lines of old and new versions about IPv4, with numeric
/// addresses (`tcpdump -n`). Fields that a line does not give are zero, except that
/// the TTL is 2; the extra length annotation holds the length of the payload. The
/// element makes sequence numbers absolute that count from the first of their
/// connection. Times of day count from midnight. The file may be compressed by gzip, bzip2, xz or zstd.
///
/// ```click
/// f :: FromTcpdump(DATA "12:00:00.5 IP 1.0.0.1.1024 > 2.0.0.2.80: Flags [S], seq 7, win 512, length 0\n# a remark\n12:00:01 IP 1.0.0.1.53 > 2.0.0.2.99: UDP, length 12\n", CHECKSUM true, STOP true) -> out
/// < out 1.0.0.1:1024 > 2.0.0.2:80 tcp syn seq 7 win 512 ttl 2 ; dst 2.0.0.2 network 0
/// < out 1.0.0.1:53 > 2.0.0.2:99 udp ttl 2 len 40
/// = f.active true
/// = f.encap IP
/// = f.sampling_prob 1
/// ```
#[derive(Clone, Element)]
#[element(args = FromTcpdumpArgs)]
pub struct FromTcpdump {
    settings: FromTcpdumpArgs,
    #[flatten]
    source: TextSource,
}

/// The arguments of `FromTcpdump`.
#[derive(Clone, Args)]
pub struct FromTcpdumpArgs {
    /// The file.
    #[arg]
    filename: Option<String>,
    /// Whether to ask the router to stop after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
    /// Whether to emit packets from the start, before `active` is written.
    #[arg(keyword, default = true)]
    active: bool,
    /// Ignored: fields that no line sets are always zero.
    #[arg(keyword, default = true)]
    #[allow(dead_code)]
    zero: bool,
    /// Whether to set checksums, and to make packets as long as their header states.
    #[arg(keyword, default = false)]
    checksum: bool,
    /// The probability with which each packet is emitted; more than 1 counts as 1.
    #[arg(keyword, default = 1.0, range = 0.0..)]
    sample: f64,
    /// The lines themselves, instead of a file.
    #[arg(keyword)]
    data: Option<Data>,
}

/// The open file and the position in it.
#[derive(Default, Local)]
pub struct FromTcpdumpState {
    file: Option<LineReader>,
    reader: Reader,
    #[flatten]
    switch: EmitSwitch,
    /// Whether a line that is no packet has been reported.
    has_reported_line: bool,
    /// Bytes read.
    #[read]
    filepos: u64,
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &FromTcpdumpArgs| {
        Resource::input(it.filename.as_deref(), "reads lines from it")
    })
}

impl Build for FromTcpdump {
    type Args = FromTcpdumpArgs;

    fn build(mut it: FromTcpdumpArgs, setup: &Setup) -> Result<Self, ArgError> {
        let source = TextSource::new(it.filename.take(), it.data.take(), it.sample, setup)?;
        Ok(FromTcpdump { settings: it, source })
    }
}

/// A line of the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// One with a packet.
    Packet,
    /// Another one.
    Other,
    /// None, at the end of the file.
    End,
}

impl FromTcpdump {
    /// Opens the file; standard input only in `start`, when no previous element reads it any more.
    fn open(&self, local: &mut FromTcpdumpState, cx: &mut Cx) -> Result<(), ArgError> {
        (local.reader, local.switch.is_on) =
            (Reader::new(self.settings.checksum), self.settings.active);
        let mut file = self.source.open().map_err(|error| ArgError::new(error.to_string()))?;
        if !file.peek(Reader::is_first_line).unwrap_or(true) {
            let what = "first line suspicious; is this a tcpdump output file?";
            cx.chatter(&format!("{}: warning: {what}", file.landmark()));
        }
        local.file = Some(file);
        Ok(())
    }
}

impl Source for FromTcpdump {
    type Local = FromTcpdumpState;
    type Fate = ();

    fn can_take_state(&self, _: &FromTcpdump) -> bool {
        false // a new element opens its file anew
    }

    fn init(&self, local: &mut FromTcpdumpState, cx: &mut Cx) -> Result<(), ArgError> {
        if self.source.is_standard_input() { Ok(()) } else { self.open(local, cx) }
    }

    fn start(&self, local: &mut FromTcpdumpState, cx: &mut Cx) -> Result<(), ArgError> {
        if self.source.is_standard_input() { self.open(local, cx) } else { Ok(()) }
    }

    fn produce(&self, local: &mut FromTcpdumpState, n: usize, cx: &mut Cx) -> NextRun {
        if !local.switch.is_on {
            return NextRun::Done;
        }
        let n = cx.grant(n);
        if n == 0 {
            return NextRun::Empty;
        }
        for _ in 0..n {
            // So many lines in a row may have no packet.
            let mut read = (0..LINES_A_PACKET).map(|_| self.read(local, cx));
            if read.find(|it| *it != LineKind::Other) == Some(LineKind::End) {
                if local.file.take().is_some() && self.settings.stop {
                    cx.stop();
                }
                return NextRun::Done;
            }
        }
        NextRun::Again
    }

    fn is_active(&self, local: &FromTcpdumpState) -> bool {
        local.switch.is_on && local.file.is_some()
    }

    fn cleanup(&self, local: &mut FromTcpdumpState, _: &mut Cx) {
        local.file = None;
    }
}

impl FromTcpdump {
    /// Reads a line and emits its packet.
    fn read(&self, local: &mut FromTcpdumpState, cx: &mut Cx) -> LineKind {
        let Some(file) = &mut local.file else { return LineKind::End };
        let parsed = match file.next_line() {
            Ok(Some(line)) => local.reader.line(&line),
            Ok(None) => return LineKind::End,
            Err(error) => {
                cx.chatter(&format!("{}: {}", file.landmark(), io_error_text(&error)));
                return LineKind::End;
            }
        };
        local.filepos = file.position();
        match parsed {
            Ok(None) => {}
            Ok(Some(parsed)) => {
                if !self.source.sample_rate.takes(cx) {
                    return LineKind::Packet;
                }
                let Some(mut packet) = cx.copy_in(&parsed.bytes) else { return LineKind::Packet };
                if let Some(network) = parsed.network {
                    mark(&mut packet, network);
                }
                annotate(&mut packet, &parsed.meta);
                cx.emit((), packet);
                return LineKind::Packet;
            }
            // Only the first line that is no packet is reported, as there may be many.
            Err(_) if std::mem::replace(&mut local.has_reported_line, true) => {}
            Err(error) => cx.chatter(&format!("{}: {error}", file.landmark())),
        }
        LineKind::Other
    }
}
