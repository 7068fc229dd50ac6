//! `FromDump`: reads packets from a capture file.

use super::dump_pace::{Due, DumpPace};
use super::emit_switch::EmitSwitch;
use super::encap::{self, Encap};
use super::sample_rate::SampleRate;
use crate::pcap::{self, DumpReader};
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use castanet_kit::formula::Formula;
use castanet_packet::anno;
use castanet_wire::{Ethernet, Ipv4Header};
use std::collections::VecDeque;

/// Reads packets from the pcap or pcapng file FILENAME, `-` for standard input.
///
/// The file may be compressed by gzip, bzip2, xz or zstd.
///
/// The timestamp annotation of a packet is the time of its capture; the extra
/// length annotation is the number of bytes that were not captured. With TIMING the
/// element emits packets at their intervals in the capture, otherwise as fast as
/// possible.
///
/// ```text
/// FromDump(trace.pcap, STOP true) -> c :: Counter -> Discard;
/// ```
#[derive(Clone, Element)]
#[element(args = FromDumpArgs, ports = "0/1-2", methods)]
pub struct FromDump {
    settings: FromDumpArgs,
    sample_rate: SampleRate,
    /// The name of the element in messages.
    name: String,
    /// Where packets go one at a time: how many in a turn.
    packets_a_turn: Option<u32>,
}

/// The arguments of `FromDump`.
#[derive(Clone, Args)]
pub struct FromDumpArgs {
    /// The file.
    #[arg]
    filename: String,
    /// Whether to emit packets at their intervals in the capture.
    #[arg(default = false)]
    timing: bool,
    /// Whether to ask the router to stop after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
    /// The probability with which each packet is emitted; more than 1 counts as 1.
    #[arg(keyword, default = 1.0, range = 0.0..)]
    sample: f64,
    /// Whether to emit only IP packets on output 0, with their IP header marked. Of captures of raw IP
    /// packets that always holds.
    #[arg(keyword, default = false)]
    force_ip: bool,
    /// The length to which packets are cut or extended, with an Ethernet header of 14 bytes: -1 for none,
    /// 0 for the length that they had before capture, or 60 to 9000. The length in an IPv4 header is
    /// changed with it.
    #[arg(keyword, default = -1, range = -1..=9000)]
    force_len: i32,
    /// With TIMING, the speed in percent of that of the capture.
    #[arg(keyword, default = 100, range = 1..)]
    acceleration: u32,
    /// With TIMING, the speed as a function of `x`, the seconds since the first packet. When it comes to
    /// 0, the router is stopped.
    #[arg(keyword)]
    timing_fnt: Option<Formula>,
    /// Number of bytes to read before the router starts, in whole packets; all if negative.
    #[arg(keyword, default = 0)]
    preload: i64,
    /// The time of capture from which packets are emitted, in seconds since 1970.
    #[arg(keyword)]
    start: Option<Duration>,
    /// The time after the first packet of the file from which packets are emitted.
    #[arg(keyword)]
    start_after: Option<Duration>,
    /// The time of capture before which packets are emitted, in seconds since 1970.
    #[arg(keyword)]
    end: Option<Duration>,
    /// The time after the first packet of the file before which packets are emitted.
    #[arg(keyword)]
    end_after: Option<Duration>,
    /// The time after the first packet that is emitted before which packets are emitted.
    #[arg(keyword)]
    interval: Option<Duration>,
    /// Whether to emit packets from the start, before `active` is written.
    #[arg(keyword, default = true)]
    active: bool,
    /// Ignored: the element chooses how to read the file.
    #[arg(keyword, default = false)]
    #[expect(dead_code, reason = "for configurations that say so")]
    mmap: bool,
    /// Number of packets to emit in a turn; 0 for the engine's burst, or, under `click`, 32 one after the
    /// other.
    #[arg(keyword, default = 0)]
    burst: u32,
    /// The handler to write after the last packet, and its value.
    #[arg(keyword)]
    end_call: Option<Call>,
    /// The offset in the file, in bytes, of the packet record to begin with.
    #[arg(keyword)]
    filepos: Option<u64>,
}

/// The default of BURST in FastClick.
const CLICK_BURST: u32 = 32;

/// The exits of packets.
#[derive(Fate)]
pub enum FromDumpExit {
    /// Packets.
    Packet,
    /// With FORCE_IP, packets that are not IP.
    #[optional]
    NotIp,
}

/// The open file and the position in it.
#[derive(Default, Local)]
#[local(methods)]
pub struct FromDumpState {
    file: Option<DumpReader>,
    #[flatten]
    switch: EmitSwitch,
    /// Packets emitted since the last reset.
    #[read]
    count: u64,
    /// The link type of the packet that was read last, or else of the file.
    encap: Option<u32>,
    /// The time of the file's first packet.
    first: Option<Time>,
    /// The time of the first packet that is emitted.
    first_emitted: Option<Time>,
    pace: DumpPace,
    /// Packets of the present turn, where packets go one at a time.
    in_turn: u32,
    /// Packets that were read ahead: at the start, or because they are not due yet, or beyond the end.
    ahead: VecDeque<Packet>,
    /// The time by which the end was postponed.
    extended: Duration,
    /// The offset at which a handler wants to continue.
    seek: Option<u64>,
    /// Offset in the file of the packet that was read last, in bytes.
    #[read]
    packet_filepos: u64,
    /// Number of bytes of the file that were read.
    position: u64,
}

#[handlers]
impl FromDump {
    /// The probability with which each packet is emitted.
    #[read]
    fn sampling_prob(&self) -> String {
        self.sample_rate.probability()
    }

    /// The file's name.
    #[read]
    fn filename(&self) -> String {
        self.settings.filename.clone()
    }

    /// The file's size in bytes, or `-` if it has none.
    #[read]
    fn filesize(&self) -> String {
        pcap::size(&self.settings.filename).map_or("-".into(), |size| size.to_string())
    }
}

#[handlers]
impl FromDumpState {
    /// The header that packets begin with.
    #[read]
    fn encap(&self) -> String {
        self.encap.map_or_else(String::new, |link| Encap(link).to_string())
    }

    /// Number of bytes of the file that were read.
    #[read]
    fn filepos(&self) -> u64 {
        self.seek.unwrap_or(self.position)
    }

    /// Continues at another offset in the file, at which a packet record begins.
    #[write(filepos)]
    fn set_filepos(&mut self, text: &str) -> Result<(), ArgError> {
        self.seek = Some(u64::from_arg(text.trim(), &Names::default())?);
        Ok(())
    }

    /// Postpones the end by a number of seconds, and continues.
    #[write]
    fn extend_interval(&mut self, text: &str) -> Result<(), ArgError> {
        self.extended += Duration::from_arg(text.trim(), &Names::default())?;
        self.switch.is_on = true;
        Ok(())
    }

    /// Resets `count` to zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.count = 0;
        Ok(())
    }

    /// With TIMING, emits the next packet at once and times the others by it.
    #[write]
    fn reset_timing(&mut self, _: &str) -> Result<(), ArgError> {
        self.pace.reset();
        Ok(())
    }
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &FromDumpArgs| {
        Resource::input(Some(&it.filename), "reads packets from it")
    })
}

impl Build for FromDump {
    type Args = FromDumpArgs;

    fn build(settings: FromDumpArgs, setup: &Setup) -> Result<Self, ArgError> {
        let count = |list: &[Option<Duration>]| list.iter().flatten().count();
        if count(&[settings.start, settings.start_after]) > 1 {
            let error = ArgError::new("START and START_AFTER exclude each other");
            return Err(error.click("more than one of 'START', 'START_AFTER' specified"));
        }
        if count(&[settings.end, settings.end_after, settings.interval]) > 1 {
            let error = ArgError::new("END, END_AFTER and INTERVAL exclude each other");
            return Err(error.click("more than one of 'END', 'END_AFTER', 'INTERVAL' specified"));
        }
        if settings.stop && settings.end_call.is_some() {
            return Err(ArgError::new("END_CALL and STOP exclude each other")
                .click("END_CALL and STOP are mutually exclusive"));
        }
        if (1..MIN_FRAME).contains(&settings.force_len) {
            let error = ArgError::new(format!("{} is not -1, 0 or 60 to 9000", settings.force_len));
            let error = error.at("FORCE_LEN");
            return Err(error.reworded("FORCE_LEN requires a valid frame size"));
        }
        let sample_rate = SampleRate::new(settings.sample, setup);
        let packets_a_turn = setup.as_click.then_some(if settings.burst == 0 {
            CLICK_BURST
        } else {
            settings.burst
        });
        Ok(FromDump { settings, sample_rate, name: setup.name.to_owned(), packets_a_turn })
    }
}

impl FromDump {
    /// The handler that END_CALL names.
    pub(super) fn calls(
        config: &str,
        names: &Names,
    ) -> Option<Vec<(Option<&'static str>, String)>> {
        let call = <FromDumpArgs as Args>::parse(config, names).ok()?.end_call?;
        Some(vec![(Some("END_CALL"), call.handler)])
    }
}

impl Source for FromDump {
    type Local = FromDumpState;
    type Fate = FromDumpExit;

    fn can_take_state(&self, _: &FromDump) -> bool {
        false // a new element opens its file anew
    }

    fn init(&self, local: &mut FromDumpState, cx: &mut Cx) -> Result<(), ArgError> {
        local.switch.is_on = self.settings.active;
        match self.is_standard_input() {
            true => Ok(()),
            false => self.begin(local, cx),
        }
    }

    fn start(&self, local: &mut FromDumpState, cx: &mut Cx) -> Result<(), ArgError> {
        match self.is_standard_input() {
            true => self.begin(local, cx),
            false => Ok(()),
        }
    }

    fn produce(&self, local: &mut FromDumpState, n: usize, cx: &mut Cx) -> NextRun {
        if !local.switch.is_on {
            return NextRun::Done;
        }
        if let Some(position) = local.seek.take() {
            local.ahead.drain(..).for_each(|packet| cx.consume(packet.into()));
            if let Err(error) = self.open(local, Some(position)) {
                cx.chatter(&format!("FromDump({}): {error}", self.settings.filename));
                local.file = None;
            }
        }
        let n = match (self.packets_a_turn, self.settings.burst) {
            // With devices the engine asks for bursts.
            (Some(_), _) if n == 1 => 1,
            (_, 0) => n,
            (_, burst) => burst as usize,
        };
        let next_run = self.emit_up_to(local, n, cx);
        local.in_turn = if n == 1 { local.in_turn + 1 } else { 0 };
        if next_run == NextRun::Again
            && self.packets_a_turn.is_some_and(|most| !local.in_turn.is_multiple_of(most))
        {
            return NextRun::SameTurn;
        }
        local.in_turn = 0;
        next_run
    }

    fn is_active(&self, local: &FromDumpState) -> bool {
        let more = local.file.is_some() || !local.ahead.is_empty() || local.seek.is_some();
        local.switch.is_on && more
    }

    fn held(&self, local: &FromDumpState) -> usize {
        local.ahead.len()
    }

    fn cleanup(&self, local: &mut FromDumpState, _: &mut Cx) {
        local.file = None;
        local.ahead.clear();
    }
}

/// The end of the capture, or an error in it.
struct EndOfDump;

impl FromDump {
    /// Emits up to `n` packets.
    fn emit_up_to(&self, local: &mut FromDumpState, n: usize, cx: &mut Cx) -> NextRun {
        // Packets that were read ahead have their frames already.
        let n = cx.grant(n).max(local.ahead.len().min(n));
        if n == 0 {
            return NextRun::Empty;
        }
        for _ in 0..n {
            let packet = match local.ahead.pop_front() {
                Some(packet) => packet,
                None => match self.read(local, cx) {
                    Ok(Some(packet)) => packet,
                    Ok(None) => continue,
                    Err(EndOfDump) => {
                        local.file = None;
                        return self.finish(local, cx);
                    }
                },
            };
            if self.is_beyond(local, &packet) {
                local.ahead.push_front(packet);
                return self.finish(local, cx);
            }
            match self.due(local, &packet, cx) {
                Due::Now => self.emit(local, packet, cx),
                Due::At(due) => {
                    local.ahead.push_front(packet);
                    cx.retry_at(due);
                    return NextRun::At(due);
                }
                Due::Never => {
                    self.emit(local, packet, cx);
                    local.switch.is_on = false;
                    cx.stop();
                    return NextRun::Done;
                }
            }
        }
        NextRun::Again
    }

    /// Whether the file is standard input, which a previous element may read until this one starts.
    fn is_standard_input(&self) -> bool {
        self.settings.filename == "-"
    }

    /// Opens the file, and reads the first packets where PRELOAD says so.
    fn begin(&self, local: &mut FromDumpState, cx: &mut Cx) -> Result<(), ArgError> {
        self.open(local, self.settings.filepos)?;
        if self.settings.preload != 0 {
            self.preload(local, cx);
        }
        Ok(())
    }

    /// Reads packets of PRELOAD bytes, and says how many.
    fn preload(&self, local: &mut FromDumpState, cx: &mut Cx) {
        let wanted = usize::try_from(self.settings.preload).unwrap_or(usize::MAX);
        let mut bytes = 0;
        while bytes < wanted && cx.grant(1) > 0 {
            let Ok(read) = self.read(local, cx) else { break };
            let Some(packet) = read else { continue };
            bytes += packet.len();
            let Some(packet) = cx.keep_one(packet, || local.ahead.len()) else { break };
            local.ahead.push_back(packet);
        }
        let (name, count) = (&self.name, local.ahead.len());
        if bytes < wanted {
            let what = "there are no more packets, or there is no memory for them";
            cx.chatter(&format!("warning: Cannot read more than {count} packets: {what}"));
        }
        cx.chatter(&format!("{name} : Preloaded {count} packets ({bytes} bytes)"));
    }

    /// Opens the file, to begin at the offset `position` if there is one.
    fn open(&self, local: &mut FromDumpState, position: Option<u64>) -> Result<(), ArgError> {
        let file = pcap::open(&self.settings.filename);
        let mut file = file.map_err(|error| ArgError::new(error.to_string()))?;
        if let Some(position) = position {
            let reached = file.skip_to(position);
            if !reached.map_err(|error| ArgError::new(error.to_string()).at("FILEPOS"))? {
                let before = file.offset();
                return Err(ArgError::new(format!("packets begin at {before}")).at("FILEPOS"));
            }
        }
        if let Some(link) = file.link_type().filter(|&link| !encap::finds_ip(link))
            && self.settings.force_ip
        {
            let error = format!("unknown linktype {link}; can't force IP packets");
            return Err(ArgError::new(error).at(&self.settings.filename));
        }
        (local.encap, local.position) = (file.link_type(), file.offset());
        local.file = Some(file);
        Ok(())
    }

    /// Reads a packet; `None` if START or SAMPLE exclude it, or there is no frame.
    fn read(&self, local: &mut FromDumpState, cx: &mut Cx) -> Result<Option<Packet>, EndOfDump> {
        let file = local.file.as_mut().ok_or(EndOfDump)?;
        let before = file.offset();
        let record = match file.next_packet() {
            Ok(record) => record.ok_or(EndOfDump)?,
            Err(error) => {
                cx.chatter(&format!("FromDump({}): {error}", self.settings.filename));
                return Err(EndOfDump);
            }
        };
        local.packet_filepos = before;
        let time = Time(record.timestamp.0);
        let first = *local.first.get_or_insert(time);
        if self.settings.start().is_some_and(|start| time < start.after(first)) {
            return Ok(None);
        }
        local.first_emitted.get_or_insert(time);
        if !self.sample_rate.takes(cx) {
            return Ok(None);
        }
        let (wire_len, link) = (record.wire_len as usize, record.link_type);
        let Some(mut packet) = cx.copy_in(record.data) else { return Ok(None) };
        packet.set_timestamp(time.0);
        if let Some(len) = self.settings.forced_len(wire_len, link) {
            set_len(&mut packet, len, link);
        }
        if wire_len > packet.len() {
            packet.set_anno_u32(anno::EXTRA_LENGTH, (wire_len - packet.len()) as u32);
        }
        local.encap = Some(link);
        local.position = local.file.as_ref().map_or(local.position, DumpReader::offset);
        Ok(Some(packet))
    }

    /// Whether a packet is at or after the end time.
    fn is_beyond(&self, local: &FromDumpState, packet: &Packet) -> bool {
        let (first, from) = (local.first.unwrap_or_default(), local.first_emitted);
        let end = self.settings.end().map(|end| end.after(first, from.unwrap_or_default()));
        end.is_some_and(|end| Time(packet.timestamp()) >= end + local.extended)
    }

    /// When to emit a packet.
    fn due(&self, local: &mut FromDumpState, packet: &Packet, cx: &mut Cx) -> Due {
        let FromDumpArgs { timing, acceleration, timing_fnt, .. } = &self.settings;
        match timing {
            true => local.pace.due(packet, *acceleration, timing_fnt.as_ref(), cx),
            false => Due::Now,
        }
    }

    fn emit(&self, local: &mut FromDumpState, mut packet: Packet, cx: &mut Cx) {
        let is_ip = encap::mark(&mut packet, local.encap.unwrap_or_default());
        // As in Click, a capture of raw IP packets has no others.
        let force_ip = self.settings.force_ip || local.encap.is_some_and(encap::is_raw);
        let exit = if force_ip && !is_ip { FromDumpExit::NotIp } else { FromDumpExit::Packet };
        if exit.index() == FromDumpExit::Packet.index() {
            local.count += 1;
        }
        if let Some(ip) = packet.ipv4_header().filter(|_| force_ip) {
            let dst = ip.dst();
            packet.set_dst(dst);
        }
        cx.emit(exit, packet);
    }

    fn finish(&self, local: &mut FromDumpState, cx: &mut Cx) -> NextRun {
        local.switch.is_on = false;
        if self.settings.stop {
            cx.stop();
        } else if let Some(Call { handler, value }) = &self.settings.end_call {
            cx.call(handler, value);
        }
        NextRun::Done
    }
}

/// Length of the shortest Ethernet frame without its checksum, in bytes.
const MIN_FRAME: i32 = 60;

/// Cuts a packet or adds zero bytes, and changes the length in its IPv4 header, if it has one.
fn set_len(packet: &mut Packet, len: usize, link: u32) {
    match len.checked_sub(packet.len()) {
        Some(missing) => _ = packet.put_back(missing),
        None => packet.truncate(len),
    }
    let Some(offset) = encap::ip_offset(packet.bytes(), link) else { return };
    let total = u16::try_from(len - offset);
    let header = packet.bytes_mut().get_mut(offset..).and_then(Ipv4Header::from_prefix_mut);
    if let (Some((header, _)), Ok(total)) = (header, total)
        && header.version() == 4
        && header.total_len() != total
    {
        header.rewrite_total_len(total);
    }
}

/// The time from which packets are emitted: absolute, or after the file's first packet.
#[derive(Clone, Copy)]
enum StartTime {
    At(Duration),
    After(Duration),
}

/// The time before which packets are emitted: absolute, or after a first packet.
#[derive(Clone, Copy)]
enum EndTime {
    At(Duration),
    After(Duration),
    /// After the first packet that is emitted.
    Interval(Duration),
}

impl FromDumpArgs {
    /// The length that FORCE_LEN gives to a packet with this length before capture; `None` if it keeps
    /// that of its capture.
    fn forced_len(&self, wire_len: usize, link: u32) -> Option<usize> {
        let frame = match self.force_len {
            ..0 => return None,
            // No packet is longer, whatever the file says.
            0 => wire_len.min(usize::from(u16::MAX)),
            len => len as usize,
        };
        // Packets without a link header are so much shorter.
        Some(if encap::is_raw(link) { frame.saturating_sub(Ethernet::LEN) } else { frame })
    }

    fn start(&self) -> Option<StartTime> {
        self.start.map(StartTime::At).or(self.start_after.map(StartTime::After))
    }

    fn end(&self) -> Option<EndTime> {
        let end = self.end.map(EndTime::At).or(self.end_after.map(EndTime::After));
        end.or(self.interval.map(EndTime::Interval))
    }
}

impl StartTime {
    fn after(self, first: Time) -> Time {
        match self {
            StartTime::At(time) => Time::default() + time,
            StartTime::After(time) => first + time,
        }
    }
}

impl EndTime {
    fn after(self, first: Time, emitted: Time) -> Time {
        match self {
            EndTime::At(time) => Time::default() + time,
            EndTime::After(time) => first + time,
            EndTime::Interval(time) => emitted + time,
        }
    }
}
