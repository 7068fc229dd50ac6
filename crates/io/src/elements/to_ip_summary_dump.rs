//! `ToIPSummaryDump`: writes a line about each packet.

use super::summary::{Fields, MetaIter, meta_of};
use castanet_element::args::io_error_text;
use castanet_element::output::OutputWriter;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use castanet_wire::Timestamp;
use castanet_wire::summary::{self, Field, Meta, Writer};
use std::io::Write;

/// Writes a line about each packet to the file FILENAME, `-` for standard output.
///
/// FIELDS lists the fields of a line: `timestamp`, `ip_src`, `sport`, `tcp_flags`
/// and so on; a field that a packet does not have is `-`. The element emits the
/// packets again if its output is connected. A line is in the file at most a second
/// after the element has written it. With BINARY the element writes a record of
/// numbers in network byte order for each packet, with zeros for fields that it does
/// not have; the field `payload` is then not allowed, and times are in microseconds,
/// except `ntimestamp`.
///
/// ```click
/// in -> ToIPSummaryDump(/dev/null, FIELDS 'ip src' sport "ip dst" dport proto) -> out
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
    /// Whether the output is connected.
    has_output: bool,
}

/// The arguments of `ToIPSummaryDump`.
#[derive(Args)]
pub struct ToIPSummaryDumpArgs {
    /// The file.
    #[arg]
    filename: String,
    /// The fields to write of each packet.
    #[arg(keyword, default = Fields::of("timestamp ip_src"))]
    fields: Fields,
    /// Older name of FIELDS.
    #[arg(keyword)]
    contents: Option<Fields>,
    /// Oldest name of FIELDS.
    #[arg(keyword)]
    data: Option<Fields>,
    /// Whether the dump begins with a line that lists the fields.
    #[arg(keyword, default = true)]
    header: bool,
    /// Whether the dump begins with the host's name and the time.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// The name of the dump's creator, for its first lines.
    #[arg(keyword)]
    banner: Option<String>,
    /// Whether to write a line for each of the packets that a packet stands for.
    #[arg(keyword, default = false)]
    multipacket: bool,
    /// Whether to write a line about the errors of a malformed packet before its own line.
    #[arg(keyword, default = false)]
    bad_packets: bool,
    /// Whether packets shorter than their IP length are malformed.
    #[arg(keyword, default = true)]
    careful_trunc: bool,
    /// Whether the extra length annotation counts in the length of a packet.
    #[arg(keyword, default = true)]
    extra_length: bool,
    /// Whether to write records of numbers, which are shorter than lines.
    #[arg(keyword, default = false)]
    binary: bool,
}

/// The exit of packets that were written, and the reason to drop packets.
#[derive(Fate)]
pub enum ToIPSummaryDumpExit {
    /// Packets that were written.
    #[optional]
    Written,
    /// Packets that the element could not write. Look for room in the file system.
    #[drop]
    Unwritten,
}

/// The open file.
#[derive(Default, Local)]
#[local(methods)]
pub struct ToIPSummaryDumpState {
    /// A file that was opened, before the element has started to write.
    opened: Option<Output>,
    file: Option<OutputWriter>,
    /// The lines or records of the current burst.
    lines: Vec<u8>,
    /// The current line or word.
    line: String,
    /// Whether the buffer has unwritten bytes.
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
    /// Writes the buffer to the file.
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

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &ToIPSummaryDumpArgs| {
        Resource::output(Some(&it.filename), "writes lines to it")
    })
}

impl Build for ToIPSummaryDump {
    type Args = ToIPSummaryDumpArgs;

    fn build(mut it: ToIPSummaryDumpArgs, setup: &Setup) -> Result<Self, ArgError> {
        let older = it.data.take().or(it.contents.take());
        let mut writer = Writer::new(older.unwrap_or_else(|| it.fields.clone()).0);
        (writer.careful, writer.extra_length) = (it.careful_trunc, it.extra_length);
        ArgError::all(writer.fields().iter().map(|field| {
            match it.binary && !field.is_binary() {
                true => {
                    Err(ArgError::new(format!("{field} has no place in a binary summary dump"))
                        .click(format!("cannot use field {field} with BINARY")))
                }
                false => Ok(()),
            }
        }))?;
        it.multipacket &= !writer.fields().contains(&Field::Count);
        Ok(ToIPSummaryDump { settings: it, writer, has_output: setup.outputs > 0 })
    }
}

/// The longest time that a line stays in the buffer.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

impl PerBatch for ToIPSummaryDump {
    type On = on::Any;
    type Local = ToIPSummaryDumpState;
    type Fate = ToIPSummaryDumpExit;
    // All workers write to one file, in one order.
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
        let mut file = opened.begin_lines().map_err(failed)?;
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
            cx.set_timer(cx.now() + FLUSH_INTERVAL);
        }
        match self.has_output {
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
    /// The first lines of the dump.
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
        let (link, network) = (packet.mac_bytes(), packet.network_bytes());
        let view = summary::Packet {
            data: packet.bytes(),
            link: packet
                .mac_offset()
                .and_then(|_| link.get(..link.len().checked_sub(network.len())?)),
            network: packet.network_offset().and_then(|at| usize::try_from(at).ok()),
        };
        if self.settings.multipacket && meta.extra_packets > 0 {
            MetaIter::split(&meta, packet.len()).for_each(|meta| self.append(&view, &meta, local));
        } else {
            self.append(&view, &meta, local);
        }
    }

    /// Appends a line or a record, and before it the errors of a malformed packet.
    fn append(&self, packet: &summary::Packet<'_>, meta: &Meta, local: &mut ToIPSummaryDumpState) {
        let ToIPSummaryDumpState { line, lines, .. } = local;
        let (mut bad, start) = (String::new(), lines.len());
        let errors = self.settings.bad_packets.then_some(&mut bad);
        line.clear();
        if self.settings.binary {
            self.writer.record(packet, meta, line, lines, errors);
        } else {
            self.writer.line(packet, meta, line, errors);
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
