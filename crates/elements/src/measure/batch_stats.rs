//! `BatchStats`: statistics of burst lengths.

use castanet_element::handler::Sums;
use castanet_element::prelude::*;

/// Counts bursts by their number of packets.
///
/// Each worker counts its own bursts; a read adds up the counts of the workers
/// and computes the statistic from the sums.
///
/// ```click
/// in -> b :: BatchStats -> out
/// = b.average 0
/// = b.median 0
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = b.average 1
/// = b.median 1
/// = b.dump 1: 1
/// ! b.reset
/// = b.dump
/// ```
#[derive(Element)]
#[element(room = "measure")]
pub struct BatchStats;

/// Number of bursts by length.
#[derive(Default, Local)]
#[local(methods)]
#[write(reset)]
pub struct BatchStatsState {
    #[portable]
    counts: Vec<u64>,
}

#[handlers]
impl BatchStatsState {
    /// Mean number of packets per burst, rounded down.
    #[read]
    fn average(&self) -> Value {
        self.summarize(|counts| {
            let packets: u64 =
                (0..).zip(counts).map(|(length, count): (u64, _)| length * count).sum();
            let bursts: u64 = counts.iter().sum();
            packets.checked_div(bursts).unwrap_or(0).to_string()
        })
    }
    /// Median of packets per burst.
    #[read]
    fn median(&self) -> Value {
        self.summarize(|counts| {
            let half = counts.iter().sum::<u64>().div_ceil(2);
            let up_to = counts.iter().scan(0, |sum, count| {
                *sum += count;
                Some(*sum)
            });
            up_to.take_while(|&bursts| bursts < half).count().to_string()
        })
    }
    /// Number of bursts of each length that has occurred, one length per line.
    #[read]
    fn dump(&self) -> Value {
        self.summarize(|counts| {
            let nonzero = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            nonzero.map(|(length, count)| format!("{length}: {count}\n")).collect()
        })
    }
    /// Applies a function to the sum of all workers' counts.
    fn summarize(&self, format: fn(&[u64]) -> String) -> Value {
        Sums::new(self.counts.clone(), format).into()
    }
}

impl PerBatch for BatchStats {
    type On = on::Any;
    type Local = BatchStatsState;
    type Fate = ();

    fn batch(&self, state: &mut BatchStatsState, _: usize, batch: Batch, cx: &mut Cx) {
        if state.counts.len() <= batch.len() {
            state.counts.resize(batch.len() + 1, 0);
        }
        state.counts[batch.len()] += 1;
        cx.emit_batch((), batch);
    }
}
