//! `AverageBatchCounter`: bursts, packets and lengths, by intervals.

use castanet_engine::class::Sums;
use castanet_engine::prelude::*;

/// Counts bursts and packets, in all and in the last whole interval.
///
/// Intervals are counted from the clock's zero, so that all workers mean the
/// same one; a read adds the workers up.
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
    /// Milliseconds of an interval.
    #[arg(default = 1000, range = 1..)]
    interval: u32,
    /// Whether to add up the packets' lengths; no `AggregateLength` is needed before.
    #[arg(keyword, default = false)]
    length_stats: bool,
}

/// What was seen in some time.
#[derive(Clone, Copy, Default)]
struct Seen {
    batches: u64,
    packets: u64,
    bytes: u64,
}

/// What was seen, by intervals.
#[derive(Clone, Default, Local)]
#[local(methods)]
pub struct Intervals {
    /// Nanoseconds of an interval; none before the first burst.
    interval: u64,
    /// Which interval it is.
    number: u64,
    now: Seen,
    last: Seen,
    total: Seen,
}

impl Intervals {
    /// Begins another interval if it is time to.
    fn turn(&mut self, now: Time) {
        let number = now.0.unsigned_abs() / self.interval.max(1);
        match number.saturating_sub(self.number) {
            0 => return,
            1 => self.last = self.now,
            _ => self.last = Seen::default(),
        }
        (self.now, self.number) = (Seen::default(), number);
    }
}

/// One number by another, 0 where there is none.
fn ratio(sums: &[u64]) -> String {
    match *sums {
        [over, under] if under > 0 => (over as f64 / under as f64).to_string(),
        _ => 0.to_string(),
    }
}

fn quotient(over: u64, under: u64) -> Value {
    Sums::new(vec![over, under], ratio).into()
}

#[handlers]
impl Intervals {
    /// Packets in a burst in the last interval.
    #[read]
    fn average(&self, ask: &Ask) -> Value {
        let last = self.last(ask);
        quotient(last.packets, last.batches)
    }
    /// Packets in a burst.
    #[read]
    fn average_total(&self) -> Value {
        quotient(self.total.packets, self.total.batches)
    }
    /// Packets in the last interval.
    #[read]
    fn count_packets(&self, ask: &Ask) -> u64 {
        self.last(ask).packets
    }
    /// Packets.
    #[read]
    fn count_packets_total(&self) -> u64 {
        self.total.packets
    }
    /// Bursts in the last interval.
    #[read]
    fn count_batches(&self, ask: &Ask) -> u64 {
        self.last(ask).batches
    }
    /// Bursts.
    #[read]
    fn count_batches_total(&self) -> u64 {
        self.total.batches
    }
    /// Bytes in a packet in the last interval, if lengths are added up.
    #[read]
    fn average_frame_len(&self, ask: &Ask) -> Value {
        let last = self.last(ask);
        quotient(last.bytes, last.packets)
    }
    /// Bytes in a packet, if lengths are added up.
    #[read]
    fn average_frame_len_total(&self) -> Value {
        quotient(self.total.bytes, self.total.packets)
    }
    /// The last interval, as it is when asked.
    fn last(&self, ask: &Ask) -> Seen {
        let mut copy = self.clone();
        copy.turn(ask.now);
        copy.last
    }
}

impl PerBatch for AverageBatchCounter {
    type On = on::Any;
    type Local = Intervals;
    type Fate = ();

    fn batch(&self, seen: &mut Intervals, _: usize, batch: Batch, cx: &mut Cx) {
        const MILLISECOND: u64 = 1_000_000;
        seen.interval = u64::from(self.interval) * MILLISECOND;
        seen.turn(cx.now());
        let bytes = match self.length_stats {
            true => batch.iter().map(|packet| packet.len() as u64).sum(),
            false => 0,
        };
        for count in [&mut seen.now, &mut seen.total] {
            count.batches += 1;
            count.packets += batch.len() as u64;
            count.bytes += bytes;
        }
        cx.emit_batch((), batch);
    }
}
