//! State of `Counter`: counts and rates of a worker.

use super::metrics;
use super::recent_rate::per_second;
use castanet_element::prelude::*;
use castanet_kit::ewma::RateEwma;

/// The counts of a worker since the last reset.
#[derive(Default, Local)]
#[local(methods)]
#[write(reset, reset_counts)]
pub struct CounterState {
    /// Number of packets.
    #[read]
    #[metric(metrics::PACKETS)]
    #[portable]
    pub(super) count: u64,
    /// Number of bytes.
    #[read]
    #[metric(metrics::BYTES)]
    #[portable]
    pub(super) byte_count: u64,
    pub(super) packets: RateEwma,
    pub(super) bytes: RateEwma<4, 4>,
}

#[handlers]
impl CounterState {
    /// Recent packets per second.
    #[read]
    fn rate(&self, ask: &ReadRequest) -> f64 {
        per_second(self.packets, ask.now)
    }
    /// Recent bytes per second.
    #[read]
    fn byte_rate(&self, ask: &ReadRequest) -> f64 {
        per_second(self.bytes, ask.now)
    }
    /// Recent bits per second.
    #[read]
    fn bit_rate(&self, ask: &ReadRequest) -> f64 {
        8.0 * per_second(self.bytes, ask.now)
    }
}
