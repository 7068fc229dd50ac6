//! `AverageBatchCounter`: counts bursts and packets by interval.

use super::batch_counts::Counts;
use castanet_element::handler::Sums;
use castanet_element::prelude::*;

/// Counts bursts and packets, in all and in the last whole interval.
///
/// Intervals are aligned to the zero of the clock, so that they are the same for all
/// workers; a read adds up the counts of the workers.
///
/// ```click
/// in -> b :: AverageBatchCounter(INTERVAL 500, LENGTH_STATS true) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// = b.average 0
/// = b.count_packets 0
/// = b.count_packets_total 1
/// + 500ms
/// > in  1.0.0.1 > 2.0.0.2 udp len 40
/// < out 1.0.0.1 > 2.0.0.2 udp len 40
/// = b.average 1
/// = b.average_total 1
/// = b.count_packets 1
/// = b.count_batches 1
/// = b.count_batches_total 2
/// = b.average_frame_len 60
/// = b.average_frame_len_total 50
/// + 1s
/// = b.count_packets 0
/// ```
#[derive(Element)]
#[element(room = "measure")]
pub struct AverageBatchCounter {
    /// Length of an interval in milliseconds.
    #[arg(default = 1000, range = 1..)]
    interval: u32,
    /// Whether to add up packet lengths; no `AggregateLength` is needed for that.
    #[arg(keyword, default = false)]
    length_stats: bool,
}

/// The counts of the current interval, the last whole one, and all.
#[derive(Clone, Default, Local)]
#[local(methods)]
pub struct AverageBatchCounterState {
    /// Length of an interval in nanoseconds; 0 before the first burst.
    interval: u64,
    /// Number of the current interval.
    number: u64,
    current: Counts,
    last: Counts,
    #[portable]
    total: Counts,
}

impl AverageBatchCounterState {
    /// Starts the interval of `now`, if the current one is over.
    fn advance(&mut self, now: Time) {
        let number = now.0.unsigned_abs() / self.interval.max(1);
        match number.saturating_sub(self.number) {
            0 => return,
            1 => self.last = self.current,
            _ => self.last = Counts::default(),
        }
        (self.current, self.number) = (Counts::default(), number);
    }
}

/// The quotient of two sums as text, 0 if the divisor is 0.
fn ratio(sums: &[u64]) -> String {
    match *sums {
        [dividend, divisor] if divisor > 0 => (dividend as f64 / divisor as f64).to_string(),
        _ => 0.to_string(),
    }
}

/// The quotient of two counts, of which a read adds up those of all workers first.
fn quotient(dividend: u64, divisor: u64) -> Value {
    Sums::new(vec![dividend, divisor], ratio).into()
}

#[handlers]
impl AverageBatchCounterState {
    /// Packets per burst in the last interval.
    #[read]
    fn average(&self, ask: &ReadRequest) -> Value {
        let last = self.last(ask);
        quotient(last.packets, last.batches)
    }
    /// Packets per burst.
    #[read]
    fn average_total(&self) -> Value {
        quotient(self.total.packets, self.total.batches)
    }
    /// Packets in the last interval.
    #[read]
    fn count_packets(&self, ask: &ReadRequest) -> u64 {
        self.last(ask).packets
    }
    /// Packets.
    #[read]
    fn count_packets_total(&self) -> u64 {
        self.total.packets
    }
    /// Bursts in the last interval.
    #[read]
    fn count_batches(&self, ask: &ReadRequest) -> u64 {
        self.last(ask).batches
    }
    /// Bursts.
    #[read]
    fn count_batches_total(&self) -> u64 {
        self.total.batches
    }
    /// Bytes per packet in the last interval, with LENGTH_STATS.
    #[read]
    fn average_frame_len(&self, ask: &ReadRequest) -> Value {
        let last = self.last(ask);
        quotient(last.bytes, last.packets)
    }
    /// Bytes per packet, with LENGTH_STATS.
    #[read]
    fn average_frame_len_total(&self) -> Value {
        quotient(self.total.bytes, self.total.packets)
    }
    /// The counts of the last whole interval at the time of the read.
    fn last(&self, ask: &ReadRequest) -> Counts {
        let mut copy = self.clone();
        copy.advance(ask.now);
        copy.last
    }
}

impl PerBatch for AverageBatchCounter {
    type On = on::Any;
    type Local = AverageBatchCounterState;
    type Fate = ();

    fn batch(&self, state: &mut AverageBatchCounterState, _: usize, batch: Batch, cx: &mut Cx) {
        const MILLISECOND: u64 = 1_000_000;
        state.interval = u64::from(self.interval) * MILLISECOND;
        state.advance(cx.now());
        let bytes = match self.length_stats {
            true => batch.iter().map(|packet| packet.len() as u64).sum(),
            false => 0,
        };
        for count in [&mut state.current, &mut state.total] {
            count.batches += 1;
            count.packets += batch.len() as u64;
            count.bytes += bytes;
        }
        cx.emit_batch((), batch);
    }
}
