//! The log of packets: lines on standard error, and a pcapng file.

use crate::burst::HookContext;
use crate::headers::Headers;
use crate::rewrite::RulePlan;
use crate::rule::Target;
use crate::rule_set::Entry;
use castanet_element::prelude::*;
use castanet_element::wire::sketch;
use castanet_kit::rate::TokenBucket;
use castanet_wire::pcap::{NgPacket, NgWriter, link_type};
use castanet_wire::timestamp::Timestamp;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::sync::Arc;

/// The settings of the log.
#[derive(Clone, Default)]
pub(crate) struct LogSettings {
    /// Packets of a rule that a worker logs in a second at most; 0 for all.
    pub(crate) rate: u64,
    /// The file that the packets are written to, if there is one.
    pub(crate) file: Option<LogFile>,
}

/// A pcapng file of logged packets, shared by all workers. Packets are appended to it, each at once.
#[derive(Clone)]
pub(crate) struct LogFile {
    pub(crate) path: Arc<str>,
    writer: Shared<Option<LogWriter>>,
}

/// The writer of an open file.
struct LogWriter {
    packets: NgWriter<File>,
    /// The interfaces of the file: the name, and the link type.
    interfaces: Vec<(String, u32)>,
}

impl LogFile {
    /// The file of that path, not open yet.
    pub(crate) fn new(path: &str) -> LogFile {
        LogFile { path: path.into(), writer: Shared::default() }
    }

    /// Opens the file, and begins a section behind those that it has.
    pub(crate) fn open(&self) -> Result<(), ArgError> {
        self.writer.with(|writer| {
            if writer.is_none() {
                let failed = |error| ArgError::of_file(&self.path, &error).at("LOG_FILE");
                let file = OpenOptions::new().append(true).create(true).open(&*self.path);
                let packets = NgWriter::new(file.map_err(failed)?, "castanet").map_err(failed)?;
                *writer = Some(LogWriter { packets, interfaces: Vec::new() });
            }
            Ok(())
        })
    }

    /// Writes a packet. A file that cannot be written is closed, which the message says.
    fn write(&self, interface: &str, packet: &LoggedPacket, comment: &str) -> Result<(), String> {
        self.writer.with(|writer| {
            let Some(it) = writer else { return Ok(()) };
            it.write(interface, packet, comment).map_err(|error| {
                *writer = None;
                let said = ArgError::of_file(&self.path, &error).message();
                format!("{said}; no more packets are logged to it")
            })
        })
    }
}

impl LogWriter {
    fn write(
        &mut self,
        interface: &str,
        packet: &LoggedPacket,
        comment: &str,
    ) -> std::io::Result<()> {
        let link = if packet.is_frame() { link_type::ETHERNET } else { link_type::RAW };
        let found = self.interfaces.iter().position(|(name, of)| name == interface && *of == link);
        let interface = match found {
            Some(at) => at as u32,
            None => {
                self.interfaces.push((interface.to_owned(), link));
                self.packets.add_interface(link as u16, 0, interface, "")?
            }
        };
        let bytes = packet.bytes;
        let (timestamp, length) = (Timestamp(packet.now.cast_signed()), bytes.len());
        self.packets.write(&NgPacket { interface, timestamp, length, bytes, comment })
    }
}

/// A packet to log.
#[derive(Clone, Copy)]
pub(crate) struct LoggedPacket<'p> {
    pub(crate) bytes: &'p [u8],
    pub(crate) headers: &'p Headers,
    /// The time in nanoseconds.
    pub(crate) now: u64,
}

/// The fate of a logged packet.
#[derive(Clone, Copy)]
pub(crate) enum Verdict {
    Pass,
    Drop,
    Reject,
}

impl Verdict {
    /// The verdict of the rule that drops the packet, if there is one.
    pub(crate) fn of(dropping: Option<&RulePlan>) -> Verdict {
        match dropping {
            None => Verdict::Pass,
            Some(plan) if plan.rejection.is_some() => Verdict::Reject,
            Some(_) => Verdict::Drop,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Drop => "drop",
            Verdict::Reject => "reject",
        }
    }
}

impl HookContext<'_> {
    /// A packet to log.
    pub(crate) fn logged<'p>(&self, packet: &'p Packet, headers: &'p Headers) -> LoggedPacket<'p> {
        LoggedPacket { bytes: packet.bytes(), headers, now: self.now }
    }
}

impl LoggedPacket<'_> {
    /// Whether it begins with its Ethernet header.
    fn is_frame(&self) -> bool {
        self.headers.network > 0
    }

    /// Its headers and its length, as a sketch.
    fn sketch(&self) -> String {
        let layer = if self.is_frame() { sketch::Layer::Ethernet } else { sketch::Layer::Network };
        let start = self.bytes.get(..self.headers.payload).unwrap_or(self.bytes);
        sketch::print_start(start, self.bytes.len(), layer)
    }
}

/// The limit of a rule on one worker.
struct LogLimit {
    bucket: TokenBucket,
    /// Packets that were not logged since the last one that was.
    unlogged: u64,
}

/// The log of one worker.
#[derive(Default)]
pub(crate) struct PacketLog {
    /// By identifier of the rule.
    limits: HashMap<u64, LogLimit>,
    /// Lines that are to be written.
    lines: Vec<String>,
    /// Packets that were logged.
    logged: u64,
}

impl PacketLog {
    /// Packets that were logged.
    pub(crate) fn logged(&self) -> u64 {
        self.logged
    }

    /// Logs a packet for those of the rules that log.
    pub(crate) fn add_by<'r>(
        &mut self,
        hook: &HookContext,
        rules: impl Iterator<Item = &'r Arc<Entry>>,
        verdict: Verdict,
        packet: &LoggedPacket,
    ) {
        let logging = rules.filter(|entry| entry.plan.logs);
        logging.for_each(|entry| self.add(hook, entry, verdict, packet));
    }

    /// Logs a packet for a rule, if the rate allows it.
    fn add(&mut self, hook: &HookContext, entry: &Entry, verdict: Verdict, packet: &LoggedPacket) {
        /// Rules with limits, beyond which removed ones are forgotten with all others.
        const MOST: usize = 4096;
        let (rate, now) = (hook.log.rate, packet.now);
        if self.limits.len() >= MOST && !self.limits.contains_key(&entry.id) {
            self.limits.clear();
        }
        let new = || LogLimit { bucket: TokenBucket::new(rate, rate, now), unlogged: 0 };
        let limit = self.limits.entry(entry.id).or_insert_with(new);
        if limit.bucket.rate() != rate {
            limit.bucket.set(rate, rate, now);
        }
        limit.bucket.fill(now);
        if !limit.bucket.remove_if(1) {
            limit.unlogged += 1;
            return;
        }
        let name = entry.rule.targets.iter().find_map(|target| match target {
            Target::Log(name) => name.as_deref(),
            _ => None,
        });
        let (input, output) = hook.interfaces.names(hook.port);
        let mut line = format!("{} id{} {}", name.unwrap_or("log"), entry.id, verdict.word());
        line += &format!(" in {input} out {output}: {}", packet.sketch());
        if limit.unlogged > 0 {
            line += &format!(" ({} before not logged)", limit.unlogged);
            limit.unlogged = 0;
        }
        if let Some(file) = &hook.log.file {
            self.lines.extend(file.write(input, packet, &line).err());
        }
        self.lines.push(line);
        self.logged += 1;
    }

    /// Writes the lines.
    #[inline]
    pub(crate) fn flush(&mut self, cx: &mut Cx) {
        if !self.lines.is_empty() {
            self.lines.drain(..).for_each(|line| cx.report(&line));
        }
    }
}
