//! The packets and bytes that a shaper has let through, as handlers and metrics.

use super::rate_limit::RateLimitState;
use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter, add_counts};
use castanet_element::prelude::*;

const PACKETS: Metric = Metric::counter("shaper_packets", "Packets that a shaper has let through.");
const BYTES: Metric =
    Metric::counter("shaper_bytes", "Bytes of the packets that a shaper has let through.");

/// Counts of the packets that a shaper has let through.
#[derive(Default)]
pub(super) struct ShapedTraffic {
    packets: u64,
    bytes: u64,
}

/// Counts that are added.
impl PortableState for ShapedTraffic {
    fn export(&self, _: u64, to: &mut RecordWriter) -> Option<u64> {
        to.write(&(), &[self.packets, self.bytes]);
        None
    }

    fn import(&mut self, record: &RecordReader, _: &mut Cx) -> Result<(), ArgError> {
        let counts = record.value()?;
        add_counts([&mut self.packets, &mut self.bytes], counts)
    }
}

#[handlers]
impl ShapedTraffic {
    /// Packets that the element has let through.
    #[read]
    #[metric(PACKETS)]
    fn count(&self) -> u64 {
        self.packets
    }

    /// Bytes of the packets that the element has let through.
    #[read]
    #[metric(BYTES)]
    fn byte_count(&self) -> u64 {
        self.bytes
    }
}

impl ShapedTraffic {
    /// Counts the packets of a batch.
    pub(super) fn add(&mut self, batch: &Batch) {
        self.packets += batch.len() as u64;
        self.bytes += batch.byte_count();
    }
}

/// The token bucket of an element that pulls packets at a limited rate, and the packets that it has let
/// through.
#[derive(Default, Local)]
pub struct RatedUnqueueState {
    pub(super) limit: RateLimitState,
    #[flatten]
    #[portable]
    pub(super) shaped: ShapedTraffic,
}
