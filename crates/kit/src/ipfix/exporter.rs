//! The exporting process: packs records into messages, and repeats templates.

use super::MILLISECOND;
use castanet_wire::ipfix::{
    ExporterStatistics, FlowRecord, MessageBuffer, STATISTICS_TEMPLATE, SystematicSampling,
    Template,
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
        }
    }
}

/// The fate of a message, as far as the sender knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// Whether it went out.
    pub is_sent: bool,
    /// Whether the host of the collector has refused the message before it.
    pub was_refused: bool,
}

/// Sends a message, without waiting.
pub type Send<'s> = &'s mut dyn FnMut(&[u8]) -> Delivery;

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

    /// What was sent and lost so far.
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
    pub fn add(&mut self, record: &FlowRecord, now: u64, send: Send) {
        self.add_templates_if_due(now, send);
        let template = record.template();
        let add =
            |buffer: &mut MessageBuffer| buffer.add_record(template, |field| record.value(field));
        self.put(add, now, send);
        self.waiting += 1;
    }

    /// Sends the message if there is anything in it.
    pub fn flush(&mut self, now: u64, send: Send) {
        if !self.buffer.is_empty() {
            self.send_message(now, send);
        }
    }

    /// Sends what waits, and templates if they are due, also where no flow has ended: a collector
    /// that has just started knows them then.
    pub fn keep_alive(&mut self, now: u64, send: Send) {
        self.add_templates_if_due(now, send);
        self.flush(now, send);
    }

    /// Adds the templates and the records about the exporter, if they are due.
    fn add_templates_if_due(&mut self, now: u64, send: Send) {
        let (time, messages) = self.templates_due;
        if !self.buffer.is_empty() || now < time && messages > 0 {
            return;
        }
        let ExporterSettings { template_interval, template_messages, sampling, .. } = self.settings;
        self.templates_due = (now.saturating_add(template_interval), template_messages.max(1));
        for template in self.templates {
            self.put(|buffer| buffer.add_template(template), now, send);
        }
        let statistics = self.statistics;
        self.put(|buffer| buffer.add_template(&STATISTICS_TEMPLATE), now, send);
        let add = |buffer: &mut MessageBuffer| {
            buffer.add_record(&STATISTICS_TEMPLATE, |field| statistics.value(field))
        };
        self.put(add, now, send);
        if sampling > 1 {
            let (sampling, template) =
                (SystematicSampling { interval: sampling }, &SystematicSampling::TEMPLATE);
            self.put(|buffer| buffer.add_template(template), now, send);
            let add = |buffer: &mut MessageBuffer| {
                buffer.add_record(template, |field| sampling.value(field))
            };
            self.put(add, now, send);
        }
    }

    /// Adds a record to the message, or to the next one if this one is full.
    fn put(&mut self, add: impl Fn(&mut MessageBuffer) -> bool, now: u64, send: Send) {
        if !add(&mut self.buffer) {
            self.send_message(now, send);
            let fits = add(&mut self.buffer);
            debug_assert!(fits, "each record fits into the shortest message");
        }
    }

    fn send_message(&mut self, now: u64, send: Send) {
        let data_records = self.buffer.data_records();
        let message = self.buffer.finish(seconds(now), self.sequence, self.settings.domain);
        let (octets, delivery) = (message.len() as u64, send(message));
        self.buffer.clear();
        self.sequence = self.sequence.wrapping_add(data_records);
        let (time, messages) = self.templates_due;
        self.templates_due = (time, messages.saturating_sub(1));
        let records = std::mem::take(&mut self.waiting);
        if delivery.was_refused {
            self.statistics.lost_records += std::mem::take(&mut self.last_sent);
        }
        if delivery.is_sent {
            self.last_sent = records;
            self.statistics.messages += 1;
            self.statistics.octets += octets;
            self.statistics.records += records;
        } else {
            self.statistics.lost_records += records;
        }
        if delivery.was_refused || !delivery.is_sent {
            // The collector may have missed them, or starts anew.
            self.templates_due = (0, 0);
        }
    }
}

/// A time in seconds, as the header of a message has it.
fn seconds(now: u64) -> u32 {
    (now / 1_000_000_000) as u32
}
