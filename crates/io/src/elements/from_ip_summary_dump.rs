//! `FromIPSummaryDump`: makes packets from the lines of an IP summary dump.

use super::emit_switch::EmitSwitch;
use super::summary::{Fields, MetaIter, annotate};
use super::text_source::{LINES_A_PACKET, TextSource};
use crate::text_file::LineReader;
use castanet_element::args::io_error_text;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use castanet_wire::summary::{DumpReader, Meta, ParsedPacket, record_head};
use castanet_wire::{Ethernet, Ipv4Header, ip_proto};

/// Makes packets from the IP summary dump FILENAME, `-` for standard input.
///
/// A packet has the values of its line. Fields that the line does not give are
/// zero, except that the TTL is 100 and the protocol PROTO. The extra length
/// annotation holds the number of bytes that the line counts but does not contain;
/// with CHECKSUM the packet has these bytes. The element reads the binary form of
/// dumps too, and files that are compressed by gzip, bzip2, xz or zstd.
///
/// ```click
/// f :: FromIPSummaryDump(DATA "!data ip_src sport ip_dst dport ip_proto ip_ttl count\n1.0.0.1 53 2.0.0.2 99 U 64 1\n# no packet\n2.0.0.2 - 1.0.0.1 - I 64 2\n", CHECKSUM true, MULTIPACKET true, STOP true) -> out
/// < out 1.0.0.1:53 > 2.0.0.2:99 udp ; dst 2.0.0.2 network 0
/// < out 2.0.0.2 > 1.0.0.1 icmp echo-reply len 28
/// < out 2.0.0.2 > 1.0.0.1 icmp echo-reply len 28
/// = f.active true
/// = f.encap IP
/// ```
#[derive(Clone, Element)]
#[element(args = FromIPSummaryDumpArgs)]
pub struct FromIPSummaryDump {
    settings: FromIPSummaryDumpArgs,
    #[flatten]
    source: TextSource,
    /// The state of the reader before the first line: fields and defaults by the arguments.
    start: DumpReader,
}

/// The arguments of `FromIPSummaryDump`.
#[derive(Clone, Args)]
pub struct FromIPSummaryDumpArgs {
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
    /// Whether to emit packets at the intervals of their timestamps.
    #[arg(keyword, default = false)]
    timing: bool,
    /// Whether to set checksums, and to make packets as long as their header states.
    #[arg(keyword, default = false)]
    checksum: bool,
    /// The probability with which each packet is emitted; more than 1 counts as 1.
    #[arg(keyword, default = 1.0, range = 0.0..)]
    sample: f64,
    /// The protocol of packets whose lines do not give it.
    #[arg(keyword, default = ip_proto::TCP, shown = "6")]
    proto: u8,
    /// Whether a line that stands for several packets makes that number of packets.
    #[arg(keyword, default = false)]
    multipacket: bool,
    /// The fields of lines before the dump's own `!data` line.
    #[arg(keyword)]
    fields: Option<Fields>,
    /// Other name of FIELDS.
    #[arg(keyword)]
    default_fields: Option<Fields>,
    /// Older name of FIELDS.
    #[arg(keyword)]
    contents: Option<Fields>,
    /// Oldest name of FIELDS.
    #[arg(keyword)]
    default_contents: Option<Fields>,
    /// Addresses and ports of packets whose lines do not give them: `SRC SPORT DST DPORT`, and
    /// optionally a protocol.
    #[arg(keyword)]
    flowid: Option<String>,
    /// Other name of FLOWID.
    #[arg(keyword)]
    default_flowid: Option<String>,
    /// Whether the file may be missing or empty.
    #[arg(keyword, default = false)]
    allow_nonexistent: bool,
    /// The dump itself, instead of a file.
    #[arg(keyword)]
    data: Option<Data>,
    /// Number of packets to emit at once; 0 for the engine's burst.
    #[arg(keyword, default = 0)]
    burst: u32,
    /// Ignored: the engine chooses the worker.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    migrate: bool,
}

/// The open dump and the position in it.
#[derive(Default, Local)]
pub struct FromIPSummaryDumpState {
    file: Option<LineReader>,
    dump: DumpReader,
    /// The packet of the current line, and the properties of each packet that the line stands for.
    packet: Option<ParsedPacket>,
    metas: MetaIter,
    /// With TIMING, the nanoseconds between a packet's timestamp and its emission.
    offset: Option<i64>,
    #[flatten]
    switch: EmitSwitch,
    /// Whether the end of the dump was reached.
    done: bool,
    /// Whether a line that is no packet has been reported.
    has_reported_line: bool,
    /// Bytes read.
    #[read]
    filepos: u64,
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &FromIPSummaryDumpArgs| {
        Resource::input(it.filename.as_deref(), "reads lines from it")
    })
}

impl Build for FromIPSummaryDump {
    type Args = FromIPSummaryDumpArgs;

    fn build(mut it: FromIPSummaryDumpArgs, setup: &Setup) -> Result<Self, ArgError> {
        let mut start = DumpReader::default();
        start.defaults.protocol = it.proto;
        start.defaults.checksum = it.checksum;
        let fields = it.contents.take().or(it.fields.take());
        let older = it.default_contents.take().or(it.default_fields.take());
        start.fields = fields.or(older).map(|fields| fields.0).unwrap_or_default();
        if let Some(flow) = it.flowid.take().or(it.default_flowid.take()) {
            let set = start.line(&format!("!flowid {flow}"));
            set.map_err(|error| ArgError::new(error).at("FLOWID"))?;
        }
        let source = TextSource::new(it.filename.take(), it.data.take(), it.sample, setup)?;
        Ok(FromIPSummaryDump { settings: it, source, start })
    }
}

impl FromIPSummaryDump {
    /// Opens the dump; standard input only in `start`, when no previous element reads it any more.
    fn open(&self, local: &mut FromIPSummaryDumpState, cx: &mut Cx) -> Result<(), ArgError> {
        let failed = |error: &dyn std::fmt::Display| Err(ArgError::new(error.to_string()));
        (local.dump, local.switch.is_on) = (self.start.clone(), self.settings.active);
        let name = self.source.name();
        let mut file = match self.source.open() {
            Ok(file) => file,
            Err(error) if self.settings.allow_nonexistent && error.is_not_found() => return Ok(()),
            Err(error) => return failed(&error),
        };
        match file.at_end() {
            Ok(true) if self.settings.allow_nonexistent => return Ok(()),
            Ok(true) => return failed(&format_args!("{name}: empty file")),
            Ok(false) => {}
            Err(error) => return Err(ArgError::of_file(name, &error)),
        }
        if local.dump.fields.is_empty() && !file.peek(DumpReader::is_first_line).unwrap_or(true) {
            let what = "missing banner line; is this an IP summary dump?";
            cx.chatter(&format!("{}: warning: {what}", file.landmark()));
        }
        local.file = Some(file);
        Ok(())
    }
}

impl Source for FromIPSummaryDump {
    type Local = FromIPSummaryDumpState;
    type Fate = ();

    fn can_take_state(&self, _: &FromIPSummaryDump) -> bool {
        false // a new element opens its dump anew
    }

    fn init(&self, local: &mut FromIPSummaryDumpState, cx: &mut Cx) -> Result<(), ArgError> {
        if self.source.is_standard_input() { Ok(()) } else { self.open(local, cx) }
    }

    fn start(&self, local: &mut FromIPSummaryDumpState, cx: &mut Cx) -> Result<(), ArgError> {
        if self.source.is_standard_input() { self.open(local, cx) } else { Ok(()) }
    }

    fn produce(&self, local: &mut FromIPSummaryDumpState, n: usize, cx: &mut Cx) -> NextRun {
        if !local.switch.is_on {
            return NextRun::Done;
        }
        let n = if self.settings.burst > 0 { self.settings.burst as usize } else { n };
        let n = cx.grant(n);
        if n == 0 {
            return NextRun::Empty;
        }
        for _ in 0..n {
            if !self.has_packet(local, cx) {
                return self.finish(local, cx);
            }
            // So many lines in a row may have no packet.
            let Some(meta) = local.metas.peek() else { break };
            if let Some(due) = self.due(&mut local.offset, &meta, cx.now()) {
                cx.retry_at(due);
                return NextRun::At(due);
            }
            self.emit(local, cx);
        }
        NextRun::Again
    }

    fn is_active(&self, local: &FromIPSummaryDumpState) -> bool {
        local.switch.is_on && !local.done
    }

    fn cleanup(&self, local: &mut FromIPSummaryDumpState, _: &mut Cx) {
        local.file = None;
    }
}

impl FromIPSummaryDump {
    /// Reads lines up to one with a packet, at most [`LINES_A_PACKET`]; false at the end of the dump.
    fn has_packet(&self, local: &mut FromIPSummaryDumpState, cx: &mut Cx) -> bool {
        for _ in 0..LINES_A_PACKET {
            if local.metas.peek().is_some() {
                return true;
            }
            if !self.read(local, cx) {
                return false;
            }
        }
        true
    }

    /// Reads a line; false at the end of the dump.
    fn read(&self, local: &mut FromIPSummaryDumpState, cx: &mut Cx) -> bool {
        let Some(file) = &mut local.file else { return false };
        let (line, is_packet) = match read_line(file, &mut local.dump) {
            Ok(Some(result)) => result,
            Ok(None) => return false,
            Err(error) => {
                cx.chatter(&format!("{}: {}", file.landmark(), io_error_text(&error)));
                return false;
            }
        };
        local.filepos = file.position();
        match line {
            Ok(None) => {}
            Ok(Some(packet)) => {
                let len = packet.bytes.len();
                local.metas = match self.settings.multipacket {
                    true => MetaIter::split(&packet.meta, len),
                    false => MetaIter::whole(&packet.meta),
                };
                local.packet = Some(packet);
            }
            // Only the first line that is no packet is reported, as there may be many.
            Err(_) if is_packet && std::mem::replace(&mut local.has_reported_line, true) => {}
            Err(error) => cx.chatter(&format!("{}: {error}", file.landmark())),
        }
        true
    }

    /// The time at which to emit a packet; `None` for now.
    fn due(&self, offset: &mut Option<i64>, meta: &Meta, now: Time) -> Option<Time> {
        if !self.settings.timing {
            return None;
        }
        let time = meta.timestamp.0;
        let offset = *offset.get_or_insert(now.0.saturating_sub(time));
        Some(Time(time.saturating_add(offset))).filter(|due| *due > now)
    }

    /// Emits the next of the packets that a line stands for.
    fn emit(&self, local: &mut FromIPSummaryDumpState, cx: &mut Cx) {
        let (Some(meta), Some(parsed)) = (local.metas.next(), &local.packet) else { return };
        if !self.source.sample_rate.takes(cx) {
            return;
        }
        let Some(mut packet) = cx.copy_in(&parsed.bytes) else { return };
        if let Some(network) = parsed.network {
            mark(&mut packet, network);
        }
        annotate(&mut packet, &meta);
        if meta.extra_packets != parsed.meta.extra_packets {
            set_length(&mut packet, meta.extra_length, self.settings.checksum);
        }
        cx.emit((), packet);
    }

    fn finish(&self, local: &mut FromIPSummaryDumpState, cx: &mut Cx) -> NextRun {
        (local.file, local.done) = (None, true);
        if self.settings.stop {
            cx.stop();
        }
        NextRun::Done
    }
}

/// The packet of a line, if it is valid and has one, and whether the line should be a packet.
type LineResult = (Result<Option<ParsedPacket>, String>, bool);

/// Reads the next line or record of a dump; `None` at its end.
fn read_line(file: &mut LineReader, dump: &mut DumpReader) -> std::io::Result<Option<LineResult>> {
    if !dump.binary {
        let Some(line) = file.next_line()? else { return Ok(None) };
        return Ok(Some((dump.line(&line), !line.starts_with('!'))));
    }
    let Some((head, record)) = file.next_record(|head| Some(record_head(head)?.1))? else {
        return Ok(None);
    };
    Ok(Some(match record_head(head) {
        Some((true, _)) => {
            let line = String::from_utf8_lossy(record);
            (dump.line(&line), !line.starts_with('!'))
        }
        _ => (dump.record(record).map(Some), true),
    }))
}

/// Sets a packet's header offsets, and its destination annotation.
pub(super) fn mark(packet: &mut Packet, network: usize) {
    if network >= Ethernet::LEN {
        packet.set_mac_header((network - Ethernet::LEN) as isize);
    }
    let bytes = packet.bytes().get(network..).unwrap_or_default();
    let Some((ip, _)) = Ipv4Header::from_prefix(bytes) else { return };
    let (header_len, dst) = (ip.header_len(), ip.dst());
    packet.set_network_header(network as isize, header_len);
    packet.set_dst(dst);
}

/// Sets the length fields of a packet's headers to its bytes and `extra` more.
fn set_length(packet: &mut Packet, extra: u32, checksum: bool) {
    let len = packet.network_bytes().len().saturating_add(extra as usize);
    let Ok(len) = u16::try_from(len) else { return };
    let Some(mut ip) = packet.ipv4() else { return };
    if ip.total_len() == len {
        return;
    }
    let header_len = ip.header_len() as u16;
    ip.set_total_len(len);
    if checksum {
        let options = ip.options().to_vec();
        ip.update_checksum(&options);
    }
    if let Some(mut udp) = packet.udp() {
        udp.set_length(len.saturating_sub(header_len));
    }
}
