//! Flow metering and export by IPFIX (RFC 7011): a table of flows that ends them, and an exporter
//! that packs records into messages.
//!
//! A metering process counts packets in a [`FlowCache`]; an [`Exporter`] takes the records of flows
//! that have ended.

mod exporter;
mod flow_cache;
mod observed_packet;
#[cfg(test)]
mod tests;

pub use exporter::{Delivery, Exporter, ExporterSettings, Send};
pub use flow_cache::{FlowCache, FlowLimits};
pub use observed_packet::ObservedPacket;

/// Nanoseconds in a millisecond.
const MILLISECOND: u64 = 1_000_000;
