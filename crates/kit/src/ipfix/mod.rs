//! Flow metering and export by IPFIX (RFC 7011): a table of flows that ends them, and an exporter
//! that packs records into messages.
//!
//! A metering process counts packets in a [`FlowCache`], or the packets of tracked connections in
//! [`ConnectionCounters`]; an [`Exporter`] takes the records of what has ended.

mod connection_counters;
mod exporter;
mod flow_cache;
mod observed_packet;
mod sampler;
#[cfg(test)]
mod tests;

pub use connection_counters::{ConnectionCounters, ConnectionCounts};
pub use exporter::{Exporter, ExporterSettings, Transport};
pub use flow_cache::{FlowCache, FlowLimits};
pub use observed_packet::ObservedPacket;
pub use sampler::Sampler;

/// Nanoseconds in a millisecond.
const MILLISECOND: u64 = 1_000_000;
