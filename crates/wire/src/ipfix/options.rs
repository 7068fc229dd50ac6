//! Records about the exporter itself, by options templates (RFC 7011, section 4).

use super::element::{
    Element::{
        ExportedFlowRecordTotalCount, ExportedMessageTotalCount, ExportedOctetTotalCount,
        IgnoredPacketTotalCount, NotSentFlowTotalCount, ObservationDomainId, SamplingAlgorithm,
        SamplingInterval, SamplingPopulation, SamplingSize, SelectorAlgorithm,
    },
    Field, FieldValue,
};
use super::message::Template;

/// Counts of what an exporter has sent and lost, for its observation domain.
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

/// Sampling of one packet, chosen at random, of each group of `interval` packets (RFC 5475, section
/// 5.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomSampling {
    /// Packets of a group; at least 1.
    pub interval: u32,
}

impl RandomSampling {
    /// The options template, which has the sampling by present and by deprecated elements.
    pub const TEMPLATE: Template = Template {
        id: 265,
        scope_count: 1,
        fields: &[
            Field::of(ObservationDomainId),
            Field::of(SamplingInterval),
            Field::of(SamplingAlgorithm),
            Field::of(SelectorAlgorithm),
            Field::of(SamplingSize),
            Field::of(SamplingPopulation),
        ],
    };
    /// Random n out of N, as a value of selectorAlgorithm.
    const N_OUT_OF_N: u64 = 3;
    /// Random, as a value of samplingAlgorithm.
    const RANDOM: u64 = 2;

    /// The value of a field of the template in this observation domain.
    pub fn value(&self, field: Field, domain: u32) -> FieldValue {
        FieldValue::Unsigned(match field.element {
            ObservationDomainId => domain.into(),
            SamplingAlgorithm => Self::RANDOM,
            SelectorAlgorithm => Self::N_OUT_OF_N,
            SamplingSize => 1,
            _ => self.interval.into(),
        })
    }
}
