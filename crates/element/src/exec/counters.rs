//! Packet counters of one element on one worker.

use crate::fate::REASONS;
use serde::{Deserialize, Serialize};
use std::iter::Sum;

/// Counts of one element on one worker. At every moment
/// `input + made = output + consumed + drops + open + what it keeps`.
// Whole pairs of cache lines: the control thread allocates those of all workers, and no two workers
// may share one.
#[derive(Clone, Default, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(align(128))]
pub struct Counters {
    /// Packets that came in.
    pub input: u64,
    /// Packets that it made.
    pub made: u64,
    /// Packets that it gave to connected outputs.
    pub output: u64,
    /// Packets that ended here as they should.
    pub consumed: u64,
    /// Packets dropped, by reason.
    pub drops: [u64; REASONS],
    /// Packets for outputs that nothing is connected to, by output.
    pub open: Vec<u64>,
}

impl Counters {
    /// All packets dropped or sent to an open output.
    pub fn lost(&self) -> u64 {
        self.drops.iter().sum::<u64>() + self.open.iter().sum::<u64>()
    }
    /// Packets that entered and have not left again.
    pub fn inside(&self) -> u64 {
        let left = self.output + self.consumed + self.lost();
        (self.input + self.made).saturating_sub(left)
    }
    /// Whether counts that have come from outside are so low that sums of them do not overflow.
    pub fn is_plausible(&self) -> bool {
        /// Outputs that an element may have, at the most.
        const MOST_OPEN: usize = 256;
        let all = [self.input, self.made, self.output, self.consumed];
        let counts = all.iter().chain(&self.drops).chain(&self.open);
        self.open.len() <= MOST_OPEN && counts.into_iter().all(|count| *count <= u64::MAX >> 16)
    }
    /// Adds another worker's counts.
    pub fn add(&mut self, other: &Counters) {
        self.input += other.input;
        self.made += other.made;
        self.output += other.output;
        self.consumed += other.consumed;
        self.drops.iter_mut().zip(&other.drops).for_each(|(a, b)| *a += b);
        self.open.resize(self.open.len().max(other.open.len()), 0);
        self.open.iter_mut().zip(&other.open).for_each(|(a, b)| *a += b);
    }
}

impl Sum for Counters {
    fn sum<I: Iterator<Item = Counters>>(counters: I) -> Counters {
        counters.fold(Counters::default(), |mut sum, other| {
            sum.add(&other);
            sum
        })
    }
}
