//! The exporting process: packs records into messages, and repeats templates.

use super::MILLISECOND;
use castanet_wire::ipfix::{
    ExporterStatistics, Field, FieldValue, FlowRecord, MessageBuffer, RandomSampling,
    STATISTICS_TEMPLATE, Template,
};
use castanet_wire::{Ipv6Header, Udp};

/// The parameters of an exporter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExporterSettings {
    /// The observation domain, in which sequence numbers and templates are valid.
    pub domain: u32,
    /// The longest message in bytes.
    pub max_message: usize,
    /// Time in nanoseconds after which templates are sent again.
    pub template_interval: u64,
    /// Number of messages after which templates are sent again.
    pub template_messages: u32,
    /// One packet is sampled of so many.
    pub sampling: u32,
    /// Whether what was sent and lost is sent with the templates.
    pub has_statistics: bool,
}

impl ExporterSettings {
    /// The longest message in an IP packet of `mtu` bytes, of either family.
    pub const fn message_len(mtu: usize) -> usize {
        mtu.saturating_sub(Ipv6Header::LEN + Udp::LEN)
    }
}

impl Default for ExporterSettings {
    fn default() -> Self {
        ExporterSettings {
            domain: 1,
            max_message: Self::message_len(1500),
            template_interval: 60_000 * MILLISECOND,
            template_messages: 100,
            sampling: 1,
            has_statistics: false,
        }
    }
}

/// The way of messages to a collector.
pub trait Transport {
    /// Sends a message without waiting; returns whether it went out.
    fn send(&mut self, message: &[u8]) -> bool;

    /// Whether the collector's host has refused a message since the last call.
    fn was_refused(&mut self) -> bool;
}

/// An exporter of one observation domain. Times are nanoseconds since 1970.
#[derive(Debug)]
pub struct Exporter {
    settings: ExporterSettings,
    templates: &'static [Template],
    buffer: MessageBuffer,
    /// Flow records in the buffer.
    waiting: u64,
    /// Flow records of the last message that went out.
    last_sent: u64,
    /// Data records so far, sent or lost: a collector sees by a gap how many were lost.
    sequence: u32,
    /// Time at which templates are due again, and the messages until then.
    templates_due: (u64, u32),
    statistics: ExporterStatistics,
}

impl Exporter {
    /// An exporter of records of these templates.
    pub fn new(settings: ExporterSettings, templates: &'static [Template]) -> Exporter {
        Exporter {
            settings,
            templates,
            buffer: MessageBuffer::new(settings.max_message),
            waiting: 0,
            last_sent: 0,
            sequence: 0,
            templates_due: (0, 0),
            statistics: ExporterStatistics { domain: settings.domain, ..Default::default() },
        }
    }

    /// Changes the parameters; the observation domain stays.
    pub fn configure(&mut self, settings: ExporterSettings) {
        let settings = ExporterSettings { domain: self.settings.domain, ..settings };
        if settings != self.settings {
            self.settings = settings;
            self.buffer.set_max_len(settings.max_message);
            self.templates_due = (0, 0);
        }
    }

    /// Returns the counts of what was sent and lost so far.
    pub fn statistics(&self) -> ExporterStatistics {
        self.statistics
    }

    /// Counts packets that belong to no flow.
    pub fn count_ignored(&mut self, packets: u64) {
        self.statistics.ignored_packets += packets;
    }

    /// Counts flow records that were lost before they came to the exporter.
    pub fn count_lost(&mut self, records: u64) {
        self.statistics.lost_records += records;
    }

    /// Adds a flow record to the message; sends the message if it is full.
    pub fn add(&mut self, record: &FlowRecord, now: u64, transport: &mut dyn Transport) {
        self.add_templates_if_due(now, transport);
        let template = record.template();
        let add =
            |buffer: &mut MessageBuffer| buffer.add_record(template, |field| record.value(field));
        if !add(&mut self.buffer) {
            self.send_message(now, transport);
            self.add_templates_if_due(now, transport);
            self.put(add, now, transport);
        }
        self.waiting += 1;
    }

    /// Sends the message if there is anything in it.
    pub fn flush(&mut self, now: u64, transport: &mut dyn Transport) {
        if !self.buffer.is_empty() {
            self.send_message(now, transport);
        }
    }

    /// Sends what waits, and templates if they are due, also where no flow has ended: a collector
    /// that has just started knows them then.
    pub fn keep_alive(&mut self, now: u64, transport: &mut dyn Transport) {
        self.add_templates_if_due(now, transport);
        self.flush(now, transport);
    }

    /// Adds the templates and the records about the exporter, if they are due.
    fn add_templates_if_due(&mut self, now: u64, transport: &mut dyn Transport) {
        if !self.buffer.is_empty() {
            return;
        }
        if transport.was_refused() {
            self.statistics.lost_records += std::mem::take(&mut self.last_sent);
            // The collector starts anew.
            self.templates_due = (0, 0);
        }
        let (time, messages) = self.templates_due;
        if now < time && messages > 0 {
            return;
        }
        let ExporterSettings { template_interval, template_messages, sampling, .. } = self.settings;
        self.templates_due = (now.saturating_add(template_interval), template_messages.max(1));
        for template in self.templates {
            self.put(|buffer| buffer.add_template(template), now, transport);
        }
        if self.settings.has_statistics {
            let statistics = self.statistics;
            self.put_option(&STATISTICS_TEMPLATE, |field| statistics.value(field), now, transport);
        }
        if sampling > 1 {
            let sampling = RandomSampling { interval: sampling };
            let (template, domain) = (&RandomSampling::TEMPLATE, self.settings.domain);
            self.put_option(template, |field| sampling.value(field, domain), now, transport);
        }
    }

    /// Adds an options template with its data record.
    fn put_option(
        &mut self,
        template: &Template,
        value: impl Fn(Field) -> FieldValue,
        now: u64,
        transport: &mut dyn Transport,
    ) {
        self.put(|buffer| buffer.add_template(template), now, transport);
        self.put(|buffer| buffer.add_record(template, &value), now, transport);
    }

    /// Adds a record to the message, or to the next one if this one is full.
    fn put(
        &mut self,
        add: impl Fn(&mut MessageBuffer) -> bool,
        now: u64,
        transport: &mut dyn Transport,
    ) {
        if !add(&mut self.buffer) {
            self.send_message(now, transport);
            let fits = add(&mut self.buffer);
            debug_assert!(fits, "each record fits into the shortest message");
        }
    }

    fn send_message(&mut self, now: u64, transport: &mut dyn Transport) {
        let data_records = self.buffer.data_records();
        let message = self.buffer.finish(seconds(now), self.sequence, self.settings.domain);
        let (octets, is_sent) = (message.len() as u64, transport.send(message));
        self.buffer.clear();
        self.sequence = self.sequence.wrapping_add(data_records);
        let (time, messages) = self.templates_due;
        self.templates_due = (time, messages.saturating_sub(1));
        let records = std::mem::take(&mut self.waiting);
        if is_sent {
            self.last_sent = records;
            self.statistics.messages += 1;
            self.statistics.octets += octets;
            self.statistics.records += records;
        } else {
            self.statistics.lost_records += records;
            // The collector may miss them.
            self.templates_due = (0, 0);
        }
    }
}

/// A time in seconds, as the header of a message has it.
fn seconds(now: u64) -> u32 {
    (now / 1_000_000_000) as u32
}
