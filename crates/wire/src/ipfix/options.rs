//! Records about the exporter itself, by options templates (RFC 7011, section 4; RFC 5476, section
//! 6.5.2.1).

use super::element::{
    Element::{
        ExportedFlowRecordTotalCount, ExportedMessageTotalCount, ExportedOctetTotalCount,
        IgnoredPacketTotalCount, NotSentFlowTotalCount, ObservationDomainId,
        SamplingPacketInterval, SamplingPacketSpace, SelectorAlgorithm, SelectorId,
    },
    Field, FieldValue,
};
use super::message::Template;

/// What an exporter has sent and lost, for its observation domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExporterStatistics {
    /// The observation domain.
    pub domain: u32,
    /// Messages that were sent.
    pub messages: u64,
    /// Bytes of these messages.
    pub octets: u64,
    /// Flow records in these messages.
    pub records: u64,
    /// Flow records that were lost.
    pub lost_records: u64,
    /// Packets that belong to no flow.
    pub ignored_packets: u64,
}

/// The options template of the statistics.
pub const STATISTICS_TEMPLATE: Template = Template {
    id: 264,
    scope_count: 1,
    fields: &[
        Field::of(ObservationDomainId),
        Field::of(ExportedMessageTotalCount),
        Field::of(ExportedOctetTotalCount),
        Field::of(ExportedFlowRecordTotalCount),
        Field::of(NotSentFlowTotalCount),
        Field::of(IgnoredPacketTotalCount),
    ],
};

impl ExporterStatistics {
    /// The value of a field of [`STATISTICS_TEMPLATE`].
    pub fn value(&self, field: Field) -> FieldValue {
        FieldValue::Unsigned(match field.element {
            ObservationDomainId => self.domain.into(),
            ExportedMessageTotalCount => self.messages,
            ExportedOctetTotalCount => self.octets,
            ExportedFlowRecordTotalCount => self.records,
            NotSentFlowTotalCount => self.lost_records,
            _ => self.ignored_packets,
        })
    }
}

/// Sampling of one packet of each `interval`, by systematic count (RFC 5475, section 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SystematicSampling {
    /// One packet is sampled of so many; at least 1.
    pub interval: u32,
}

impl SystematicSampling {
    /// The options template.
    pub const TEMPLATE: Template = Template {
        id: 265,
        scope_count: 1,
        fields: &[
            Field::of(SelectorId),
            Field::of(SelectorAlgorithm),
            Field::of(SamplingPacketInterval),
            Field::of(SamplingPacketSpace),
        ],
    };
    /// Systematic sampling by count, as a value of selectorAlgorithm.
    const BY_COUNT: u64 = 1;
    /// The only selector of an exporter.
    const SELECTOR: u64 = 1;

    /// The value of a field of the template.
    pub fn value(&self, field: Field) -> FieldValue {
        FieldValue::Unsigned(match field.element {
            SelectorId => Self::SELECTOR,
            SelectorAlgorithm => Self::BY_COUNT,
            SamplingPacketInterval => 1,
            _ => self.interval.saturating_sub(1).into(),
        })
    }
}
