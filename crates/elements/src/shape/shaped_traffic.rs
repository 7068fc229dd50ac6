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

/// The token bucket of an element that pulls packets at a limited rate, its calls, and the packets
/// that it has let through.
#[derive(Default, Local)]
#[local(methods)]
pub struct RatedUnqueueState {
    pub(super) limit: RateLimitState,
    #[flatten]
    #[portable]
    pub(super) shaped: ShapedTraffic,
    /// Runs of the task.
    runs: u64,
    /// Runs without a token.
    empty_runs: u64,
    /// Batches pushed.
    pushes: u64,
    /// Pulls that brought no packet.
    failed_pulls: u64,
}

#[handlers]
impl RatedUnqueueState {
    /// Numbers of runs, of runs without a token, of pushes, failed pulls, and packets.
    #[read]
    fn calls(&self) -> String {
        let (runs, empty, pushes) = (self.runs, self.empty_runs, self.pushes);
        let (failed, packets) = (self.failed_pulls, self.shaped.packets);
        format!(
            "{runs} calls to run_task()\n{empty} empty runs\n{pushes} pushes\n\
             {failed} failed pulls\n{packets} packets\n"
        )
    }

    /// Empties the token bucket.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.limit.clear();
        Ok(())
    }
}

impl RatedUnqueueState {
    /// Counts a run, and fills the bucket of this rate and capacity; returns the time of the next
    /// run if it has fewer than `least` tokens, or `Done` if it will never have them.
    pub(super) fn begin_run(
        &mut self,
        (rate, capacity): (u64, u64),
        least: u64,
        now: Time,
    ) -> Result<(), NextRun> {
        self.runs += 1;
        let bucket = self.limit.fill(rate, capacity, now);
        if bucket.contains(least) {
            return Ok(());
        }
        self.empty_runs += 1;
        Err(bucket.time_of(least).map_or(NextRun::Done, |at| NextRun::At(Time::from_nanos(at))))
    }

    /// Counts a pull and the packets that it has brought.
    pub(super) fn count_pull(&mut self, batch: &Batch) {
        match batch.is_empty() {
            true => self.failed_pulls += 1,
            false => self.pushes += 1,
        }
        self.shaped.add(batch);
    }
}
