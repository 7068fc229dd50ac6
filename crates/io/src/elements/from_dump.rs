//! `FromDump`: packets of a capture file.

use super::encap::{self, Encap};
use super::sampling::Sampling;
use crate::pcap::{self, DumpReader};
use castanet_element::prelude::*;
use castanet_packet::anno;

/// Emits the packets of the capture FILENAME, `-` for standard input.
///
/// Reads pcap and pcapng files. Packets carry the time they were captured at
/// and, as extra length, what was not captured of them. With TIMING they are
/// emitted as far apart as they were captured, otherwise as fast as they can.
///
/// ```text
/// FromDump(trace.pcap, STOP true) -> c :: Counter -> Discard;
/// ```
#[derive(Clone, Element)]
#[element(args = FromDumpArgs, ports = "0/1-2", methods)]
pub struct FromDump {
    settings: FromDumpArgs,
    sampling: Sampling,
}

/// What can be set.
#[derive(Clone, Args)]
pub struct FromDumpArgs {
    /// The file.
    #[arg]
    filename: String,
    /// Whether to keep the time between packets.
    #[arg(default = false)]
    timing: bool,
    /// Whether to ask the router to stop after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
    /// The probability with which each packet is emitted.
    #[arg(keyword, default = 1.0, range = 0.0..=1.0)]
    sample: f64,
    /// Whether to emit nothing but IP packets on output 0, their header marked.
    #[arg(keyword, default = false)]
    force_ip: bool,
    /// The first time to emit packets of, in seconds since 1970.
    #[arg(keyword)]
    start: Option<Duration>,
    /// How much of the beginning to leave out.
    #[arg(keyword)]
    start_after: Option<Duration>,
    /// The first time not to emit packets of any more, in seconds since 1970.
    #[arg(keyword)]
    end: Option<Duration>,
    /// How long after the first packet of the file to end.
    #[arg(keyword)]
    end_after: Option<Duration>,
    /// How long after the first packet emitted to end.
    #[arg(keyword)]
    interval: Option<Duration>,
    /// Whether to emit packets before `active` is written.
    #[arg(keyword, default = true)]
    active: bool,
    /// For configurations that say so: how the file is read is not their choice.
    #[arg(keyword, default = false)]
    #[expect(dead_code, reason = "for configurations that say so")]
    mmap: bool,
    /// How many packets to emit at once; 0 for the engine's burst.
    #[arg(keyword, default = 0)]
    burst: u32,
    /// What to write to a handler after the last packet.
    #[arg(keyword)]
    end_call: Option<Call>,
    /// Where in the file to begin: at the record of a packet.
    #[arg(keyword)]
    filepos: Option<u64>,
}

/// Where packets of a capture go.
#[derive(Fate)]
pub enum Read {
    /// Packets.
    Packet,
    /// With FORCE_IP, packets that are not IP.
    #[optional]
    NotIp,
}

/// Where reading stands.
#[derive(Default, Local)]
#[local(methods)]
pub struct FromDumpState {
    file: Option<DumpReader>,
    /// Whether to emit packets now.
    active: bool,
    /// Packets emitted since the last reset.
    #[read]
    count: u64,
    encap: Option<u32>,
    /// The time of the file's first packet, and of the first emitted.
    first: Option<Time>,
    first_emitted: Option<Time>,
    /// What to add to a packet's time for the time to emit it at.
    offset: Option<i64>,
    /// A packet whose time has not come, or that is beyond the end.
    next: Option<Packet>,
    /// By how much the end has been put off.
    extended: Duration,
    /// Where a handler wants to go on.
    seek: Option<u64>,
    /// Bytes of the file before the packet that was read last.
    #[read]
    packet_filepos: u64,
    position: u64,
}

#[handlers]
impl FromDump {
    /// The probability with which each packet is emitted.
    #[read]
    fn sampling_prob(&self) -> f64 {
        self.sampling.probability()
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
    /// What packets begin with.
    #[read]
    fn encap(&self) -> String {
        self.encap.map_or_else(String::new, |link| Encap(link).to_string())
    }

    /// Whether packets are being emitted.
    #[read(active)]
    fn is_active(&self) -> bool {
        self.active
    }

    /// Begins or ceases to emit packets.
    #[write(active)]
    fn set_active(&mut self, text: &str) -> Result<(), ArgError> {
        self.active = bool::from_arg(text, &Names::default())?;
        Ok(())
    }

    /// How many bytes of the file are read.
    #[read]
    fn filepos(&self) -> u64 {
        self.seek.unwrap_or(self.position)
    }

    /// Goes on at another place of the file, where the record of a packet begins.
    #[write(filepos)]
    fn set_filepos(&mut self, text: &str) -> Result<(), ArgError> {
        self.seek = Some(u64::from_arg(text.trim(), &Names::default())?);
        Ok(())
    }

    /// Puts the end off by so many seconds, and goes on.
    #[write]
    fn extend_interval(&mut self, text: &str) -> Result<(), ArgError> {
        self.extended += Duration::from_arg(text.trim(), &Names::default())?;
        self.active = true;
        Ok(())
    }

    /// Ceases to emit packets, and asks the router to stop.
    #[write(stop, stops)]
    fn stop(&mut self, _: &str) -> Result<(), ArgError> {
        self.active = false;
        Ok(())
    }

    /// Starts `count` again from zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.count = 0;
        Ok(())
    }

    /// Takes the next packet as the first, if TIMING is set.
    #[write]
    fn reset_timing(&mut self, _: &str) -> Result<(), ArgError> {
        self.offset = None;
        Ok(())
    }
}

impl Build for FromDump {
    type Args = FromDumpArgs;

    fn build(settings: FromDumpArgs, _: &Setup) -> Result<Self, ArgError> {
        let given = |list: &[Option<Duration>]| list.iter().flatten().count();
        if given(&[settings.start, settings.start_after]) > 1 {
            let error = ArgError::new("START and START_AFTER exclude each other");
            return Err(error.click("more than one of 'START', 'START_AFTER' specified"));
        }
        if given(&[settings.end, settings.end_after, settings.interval]) > 1 {
            let error = ArgError::new("END, END_AFTER and INTERVAL exclude each other");
            return Err(error.click("more than one of 'END', 'END_AFTER', 'INTERVAL' specified"));
        }
        if settings.stop && settings.end_call.is_some() {
            return Err(ArgError::new("END_CALL and STOP exclude each other")
                .click("END_CALL and STOP are mutually exclusive"));
        }
        let sampling = Sampling::new(settings.sample);
        Ok(FromDump { settings, sampling })
    }
}

impl FromDump {
    /// The handler that it calls at its end.
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
    type Fate = Read;

    fn can_take_state(&self, _: &FromDump) -> bool {
        false // it opens what its arguments name
    }

    fn init(&self, local: &mut FromDumpState, _: &mut Cx) -> Result<(), ArgError> {
        local.active = self.settings.active;
        match self.is_standard_input() {
            true => Ok(()),
            false => self.open(local, self.settings.filepos),
        }
    }

    fn start(&self, local: &mut FromDumpState, _: &mut Cx) -> Result<(), ArgError> {
        match self.is_standard_input() {
            true => self.open(local, self.settings.filepos),
            false => Ok(()),
        }
    }

    fn produce(&self, local: &mut FromDumpState, n: usize, cx: &mut Cx) -> NextRun {
        if !local.active {
            return NextRun::Done;
        }
        if let Some(position) = local.seek.take() {
            local.next.take().into_iter().for_each(|packet| cx.consume(packet.into()));
            if let Err(error) = self.open(local, Some(position)) {
                cx.chatter(&format!("FromDump({}): {error}", self.settings.filename));
                local.file = None;
            }
        }
        let n = if self.settings.burst > 0 { self.settings.burst as usize } else { n };
        // What is read ahead has its frame.
        let n = cx.grant(n).max(usize::from(local.next.is_some()));
        if n == 0 {
            return NextRun::Empty;
        }
        for _ in 0..n {
            let packet = match local.next.take() {
                Some(packet) => packet,
                None => match self.read(local, cx) {
                    Ok(Some(packet)) => packet,
                    Ok(None) => continue,
                    Err(End) => {
                        local.file = None;
                        return self.finish(local, cx);
                    }
                },
            };
            if self.is_beyond(local, &packet) {
                local.next = Some(packet);
                return self.finish(local, cx);
            }
            if let Some(due) = self.due(local, &packet, cx) {
                local.next = Some(packet);
                cx.retry_at(due);
                return NextRun::At(due);
            }
            self.emit(local, packet, cx);
        }
        NextRun::Again
    }

    fn is_active(&self, local: &FromDumpState) -> bool {
        let more = local.file.is_some() || local.next.is_some() || local.seek.is_some();
        local.active && more
    }

    fn held(&self, local: &FromDumpState) -> usize {
        usize::from(local.next.is_some())
    }

    fn cleanup(&self, local: &mut FromDumpState, _: &mut Cx) {
        (local.file, local.next) = (None, None);
    }
}

/// The capture is over.
struct End;

impl FromDump {
    /// Whether it reads what others may still read when it begins.
    fn is_standard_input(&self) -> bool {
        self.settings.filename == "-"
    }

    /// Opens the file, to begin at a place of it.
    fn open(&self, local: &mut FromDumpState, position: Option<u64>) -> Result<(), ArgError> {
        let file = pcap::open(&self.settings.filename);
        let mut file = file.map_err(|error| ArgError::new(error.to_string()))?;
        if let Some(position) = position {
            let there = file.skip_to(position);
            if !there.map_err(|error| ArgError::new(error.to_string()).at("FILEPOS"))? {
                let before = file.offset();
                return Err(ArgError::new(format!("packets begin at {before}")).at("FILEPOS"));
            }
        }
        (local.encap, local.position) = (file.link_type(), file.offset());
        local.file = Some(file);
        Ok(())
    }

    /// Reads a packet; `None` if it is not to be emitted.
    fn read(&self, local: &mut FromDumpState, cx: &mut Cx) -> Result<Option<Packet>, End> {
        let file = local.file.as_mut().ok_or(End)?;
        let before = file.offset();
        let record = match file.next_packet() {
            Ok(record) => record.ok_or(End)?,
            Err(error) => {
                cx.chatter(&format!("FromDump({}): {error}", self.settings.filename));
                return Err(End);
            }
        };
        local.packet_filepos = before;
        let time = Time(record.timestamp.0);
        let first = *local.first.get_or_insert(time);
        if self.settings.start().is_some_and(|start| time < start.after(first)) {
            return Ok(None);
        }
        local.first_emitted.get_or_insert(time);
        if !self.sampling.takes(cx) {
            return Ok(None);
        }
        let (wire_len, link) = (record.wire_len as usize, record.link_type);
        let Some(mut packet) = cx.copy_in(record.data) else { return Ok(None) };
        packet.set_timestamp(time.0);
        if wire_len > packet.len() {
            packet.set_anno_u32(anno::EXTRA_LENGTH, (wire_len - packet.len()) as u32);
        }
        local.encap = Some(link);
        local.position = local.file.as_ref().map_or(local.position, DumpReader::offset);
        Ok(Some(packet))
    }

    /// Whether a packet is not to be emitted any more.
    fn is_beyond(&self, local: &FromDumpState, packet: &Packet) -> bool {
        let (first, from) = (local.first.unwrap_or_default(), local.first_emitted);
        let end = self.settings.end().map(|end| end.after(first, from.unwrap_or_default()));
        end.is_some_and(|end| Time(packet.timestamp()) >= end + local.extended)
    }

    /// When a packet is to be emitted, if not now.
    fn due(&self, local: &mut FromDumpState, packet: &Packet, cx: &Cx) -> Option<Time> {
        if !self.settings.timing {
            return None;
        }
        let offset = *local.offset.get_or_insert(cx.now().0 - packet.timestamp());
        let due = Time(packet.timestamp().saturating_add(offset));
        (due > cx.now()).then_some(due)
    }

    fn emit(&self, local: &mut FromDumpState, mut packet: Packet, cx: &mut Cx) {
        let is_ip = encap::mark(&mut packet, local.encap.unwrap_or_default());
        let exit = if self.settings.force_ip && !is_ip { Read::NotIp } else { Read::Packet };
        if exit.index() == Read::Packet.index() {
            local.count += 1;
        }
        if let Some(ip) = packet.ipv4_header().filter(|_| self.settings.force_ip) {
            let dst = ip.dst();
            packet.set_dst(dst);
        }
        cx.emit(exit, packet);
    }

    fn finish(&self, local: &mut FromDumpState, cx: &mut Cx) -> NextRun {
        local.active = false;
        if self.settings.stop {
            cx.stop();
        } else if let Some(Call { handler, value }) = &self.settings.end_call {
            cx.call(handler, value);
        }
        NextRun::Done
    }
}

/// A time of the file: absolute, or after its first packet.
#[derive(Clone, Copy)]
enum Start {
    At(Duration),
    After(Duration),
}

/// As [`Start`], or after the first packet emitted.
#[derive(Clone, Copy)]
enum Stop {
    At(Duration),
    After(Duration),
    Interval(Duration),
}

impl FromDumpArgs {
    fn start(&self) -> Option<Start> {
        self.start.map(Start::At).or(self.start_after.map(Start::After))
    }

    fn end(&self) -> Option<Stop> {
        let end = self.end.map(Stop::At).or(self.end_after.map(Stop::After));
        end.or(self.interval.map(Stop::Interval))
    }
}

impl Start {
    fn after(self, first: Time) -> Time {
        match self {
            Start::At(time) => Time::default() + time,
            Start::After(time) => first + time,
        }
    }
}

impl Stop {
    fn after(self, first: Time, emitted: Time) -> Time {
        match self {
            Stop::At(time) => Time::default() + time,
            Stop::After(time) => first + time,
            Stop::Interval(time) => emitted + time,
        }
    }
}
