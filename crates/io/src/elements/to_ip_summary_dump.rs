//! `ToIPSummaryDump`: a line about each packet.

use super::summary::{Each, Fields, meta_of};
use castanet_element::args::io_error_text;
use castanet_element::output::OutputWriter;
use castanet_element::prelude::*;
use castanet_wire::Timestamp;
use castanet_wire::summary::{self, Field, Meta, Writer};
use std::io::Write;

/// Writes a line about each packet to the file FILENAME, `-` for standard output.
///
/// FIELDS says what the line consists of: `timestamp`, `ip_src`, `sport`,
/// `tcp_flags` and so on; what a packet does not have shows as `-`. If its
/// output is connected, packets go on there. What is written is in the file
/// within a second. With BINARY each packet has a record of numbers in network
/// byte order, with zeros for what it does not have; `payload` then cannot be
/// written, and times are as good as a microsecond, unless as `ntimestamp`.
///
/// ```click
/// in -> ToIPSummaryDump(/dev/null, FIELDS ip_src sport ip_dst dport proto) -> out
/// > in  1.0.0.1:53 > 2.0.0.2:99 udp
/// < out 1.0.0.1:53 > 2.0.0.2:99 udp
/// ```
/// ```click
/// in -> d :: ToIPSummaryDump(/dev/full, HEADER false)
/// > in  1.0.0.1 > 2.0.0.2 udp
/// + 1s
/// ~ ToIPSummaryDump(/dev/full): No space left on device
/// > in  1.0.0.1 > 2.0.0.2 udp
/// = d.drops.unwritten 1
/// ```
#[derive(Element)]
#[element(args = ToIPSummaryDumpArgs, ports = "1/0-1", processing = "a/h", methods)]
pub struct ToIPSummaryDump {
    settings: ToIPSummaryDumpArgs,
    writer: Writer,
    /// Whether packets go on.
    passes: bool,
}

/// What can be set.
#[derive(Args)]
pub struct ToIPSummaryDumpArgs {
    /// The file.
    #[arg]
    filename: String,
    /// What to write of each packet.
    #[arg(keyword, default = Fields::of("timestamp ip_src"))]
    fields: Fields,
    /// Older name of FIELDS.
    #[arg(keyword)]
    contents: Option<Fields>,
    /// Oldest name of FIELDS.
    #[arg(keyword)]
    data: Option<Fields>,
    /// Whether to say at the beginning what the lines consist of.
    #[arg(keyword, default = true)]
    header: bool,
    /// Whether to say at the beginning where and when the dump was written.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// What to say at the beginning about who made the dump.
    #[arg(keyword)]
    banner: Option<String>,
    /// Whether a packet that stands for several gets a line for each.
    #[arg(keyword, default = false)]
    multipacket: bool,
    /// Whether to say before a line what is bad about its packet.
    #[arg(keyword, default = false)]
    bad_packets: bool,
    /// Whether packets shorter than their IP length are bad.
    #[arg(keyword, default = true)]
    careful_trunc: bool,
    /// Whether lengths count the bytes that packets say they had beyond those there are.
    #[arg(keyword, default = true)]
    extra_length: bool,
    /// Whether to write records of numbers, which are shorter than lines.
    #[arg(keyword, default = false)]
    binary: bool,
}

/// Where packets go after they were written.
#[derive(Fate)]
pub enum ToIPSummaryDumpExit {
    /// Packets that were written.
    #[optional]
    Written,
    /// Packets that the file did not take.
    #[drop]
    Unwritten,
}

/// The open file.
#[derive(Default, Local)]
#[local(methods)]
pub struct ToIPSummaryDumpState {
    /// What was opened and not begun to be written.
    opened: Option<Output>,
    file: Option<OutputWriter>,
    /// Lines or records not yet in the file's buffer.
    lines: Vec<u8>,
    /// The line or word at hand.
    line: String,
    /// Whether there is something in the buffer.
    dirty: bool,
}

#[handlers]
impl ToIPSummaryDump {
    /// The file's name.
    #[read]
    fn filename(&self) -> String {
        self.settings.filename.clone()
    }
}

#[handlers]
impl ToIPSummaryDumpState {
    /// Writes out what is still in the buffer.
    #[write]
    fn flush(&mut self, _: &str) -> Result<(), ArgError> {
        self.write_out().map_err(|error| ArgError::new(io_error_text(&error)))
    }
}

impl ToIPSummaryDumpState {
    fn write_out(&mut self) -> std::io::Result<()> {
        self.dirty = false;
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Build for ToIPSummaryDump {
    type Args = ToIPSummaryDumpArgs;

    fn build(mut it: ToIPSummaryDumpArgs, setup: &Setup) -> Result<Self, ArgError> {
        let older = it.data.take().or(it.contents.take());
        let mut writer = Writer::new(older.unwrap_or_else(|| it.fields.clone()).0);
        (writer.careful, writer.extra_length) = (it.careful_trunc, it.extra_length);
        if let Some(field) = writer.fields().iter().find(|field| it.binary && !field.is_binary()) {
            let error = format!("{field} has no place in a binary summary dump");
            return Err(ArgError::new(error).click(format!("cannot use FIELD {field} with BINARY")));
        }
        it.multipacket &= !writer.fields().contains(&Field::Count);
        Ok(ToIPSummaryDump { settings: it, writer, passes: setup.outputs > 0 })
    }
}

/// The longest that a line stays in the buffer.
const FLUSH: Duration = Duration::from_secs(1);

impl PerBatch for ToIPSummaryDump {
    type On = on::Any;
    type Local = ToIPSummaryDumpState;
    type Fate = ToIPSummaryDumpExit;
    // One file, in one order.
    const SHARED: bool = true;

    fn can_take_state(&self, before: &ToIPSummaryDump) -> bool {
        let (now, then) = (&self.settings, &before.settings);
        now.filename == then.filename && now.fields == then.fields && now.binary == then.binary
    }

    fn init(&self, local: &mut ToIPSummaryDumpState, _: &mut Cx) -> Result<(), ArgError> {
        let name = &self.settings.filename;
        local.opened = Some(Output::open(name).map_err(|e| ArgError::of_file(name, &e))?);
        Ok(())
    }

    fn start(&self, local: &mut ToIPSummaryDumpState, cx: &mut Cx) -> Result<(), ArgError> {
        let failed = |e| ArgError::of_file(&self.settings.filename, &e);
        let Some(opened) = local.opened.take() else { return Ok(()) };
        let mut file = opened.begin().map_err(failed)?;
        if self.settings.header {
            file.write_all(self.header(cx.now()).as_bytes()).map_err(failed)?;
        }
        local.file = Some(file);
        Ok(())
    }

    fn batch(&self, local: &mut ToIPSummaryDumpState, _: usize, batch: Batch, cx: &mut Cx) {
        local.lines.clear();
        let worker = cx.worker();
        batch.iter().for_each(|packet| self.describe(packet, worker, local));
        let written = local.file.as_mut().map(|file| file.write_all(&local.lines));
        if let Some(Err(error)) = written {
            self.give_up(local, &error, cx);
        }
        if local.file.is_none() {
            return cx.emit_batch(ToIPSummaryDumpExit::Unwritten, batch);
        }
        if !std::mem::replace(&mut local.dirty, true) {
            cx.set_timer(cx.now() + FLUSH);
        }
        match self.passes {
            true => cx.emit_batch(ToIPSummaryDumpExit::Written, batch),
            false => cx.consume(batch),
        }
    }

    fn run_timer(&self, local: &mut ToIPSummaryDumpState, cx: &mut Cx) {
        if let Err(error) = local.write_out() {
            self.give_up(local, &error, cx);
        }
    }

    fn cleanup(&self, local: &mut ToIPSummaryDumpState, cx: &mut Cx) {
        self.run_timer(local, cx);
        local.file = None;
    }
}

impl ToIPSummaryDump {
    /// The lines that the dump begins with.
    fn header(&self, now: Time) -> String {
        let mut header = summary::header(
            self.writer.fields(),
            self.settings.banner.as_deref(),
            self.settings.binary,
        );
        if !self.settings.verbose {
            return header;
        }
        let now = Timestamp(now.0);
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let verbose = format!("!host {}\n!runtime {now} ({})\n", host.trim(), now.calendar());
        header.insert_str(header.rfind("!data").unwrap_or(0), &verbose);
        header
    }

    /// Appends the lines about a packet.
    fn describe(&self, packet: &Packet, worker: usize, local: &mut ToIPSummaryDumpState) {
        let meta = Meta { thread: worker as u32, ..meta_of(packet) };
        let at = |offset: Option<isize>| offset.and_then(|at| usize::try_from(at).ok());
        let view = summary::Packet {
            data: packet.bytes(),
            link: at(packet.mac_offset()),
            network: at(packet.network_offset()),
        };
        if self.settings.multipacket && meta.extra_packets > 0 {
            Each::of(&meta, packet.len()).for_each(|meta| self.one(&view, &meta, local));
        } else {
            self.one(&view, &meta, local);
        }
    }

    /// Appends a line or a record, and before it what is bad about the packet.
    fn one(&self, packet: &summary::Packet<'_>, meta: &Meta, local: &mut ToIPSummaryDumpState) {
        let ToIPSummaryDumpState { line, lines, .. } = local;
        let (mut bad, start) = (String::new(), lines.len());
        let said = self.settings.bad_packets.then_some(&mut bad);
        line.clear();
        if self.settings.binary {
            self.writer.record(packet, meta, line, lines, said);
        } else {
            self.writer.line(packet, meta, line, said);
            lines.extend(line.as_bytes());
            lines.push(b'\n');
        }
        if !bad.is_empty() {
            bad.push('\n');
            let mut before = Vec::new();
            match self.settings.binary {
                true => summary::text_record(&bad, &mut before),
                false => before.extend(bad.as_bytes()),
            }
            lines.splice(start..start, before);
        }
    }

    fn give_up(&self, local: &mut ToIPSummaryDumpState, error: &std::io::Error, cx: &mut Cx) {
        let why = io_error_text(error);
        cx.chatter(&format!("ToIPSummaryDump({}): {why}", self.settings.filename));
        local.file = None;
    }
}
