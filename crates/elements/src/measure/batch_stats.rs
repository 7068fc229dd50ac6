//! `BatchStats`: how long the bursts are.

use castanet_engine::class::Sums;
use castanet_engine::prelude::*;

/// Counts bursts by their number of packets.
///
/// Every worker counts its own bursts; a read adds the workers up and then works
/// out what it answers.
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

/// Bursts by how many packets they had.
#[derive(Default, Local)]
#[local(methods)]
#[write(reset)]
pub struct Lengths {
    counts: Vec<u64>,
}

#[handlers]
impl Lengths {
    /// Packets in a burst on average, rounded down.
    #[read]
    fn average(&self) -> Value {
        self.say(|counts| {
            let packets: u64 =
                (0..).zip(counts).map(|(length, count): (u64, _)| length * count).sum();
            let bursts: u64 = counts.iter().sum();
            packets.checked_div(bursts).unwrap_or(0).to_string()
        })
    }
    /// Packets that half of the bursts have at most.
    #[read]
    fn median(&self) -> Value {
        self.say(|counts| {
            let half = counts.iter().sum::<u64>().div_ceil(2);
            let up_to = counts.iter().scan(0, |sum, count| {
                *sum += count;
                Some(*sum)
            });
            up_to.take_while(|&bursts| bursts < half).count().to_string()
        })
    }
    /// Bursts of each length that was seen, a length a line.
    #[read]
    fn dump(&self) -> Value {
        self.say(|counts| {
            let seen = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            seen.map(|(length, count)| format!("{length}: {count}\n")).collect()
        })
    }
    fn say(&self, say: fn(&[u64]) -> String) -> Value {
        Sums::new(self.counts.clone(), say).into()
    }
}

impl PerBatch for BatchStats {
    type On = on::Any;
    type Local = Lengths;
    type Fate = ();

    fn batch(&self, lengths: &mut Lengths, _: usize, batch: Batch, cx: &mut Cx) {
        if lengths.counts.len() <= batch.len() {
            lengths.counts.resize(batch.len() + 1, 0);
        }
        lengths.counts[batch.len()] += 1;
        cx.emit_batch((), batch);
    }
}
