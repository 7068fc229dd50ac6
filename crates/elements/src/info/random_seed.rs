//! `RandomSeed`: seeds the random numbers.

use castanet_element::prelude::*;

/// Seeds the random number generators of all elements.
///
/// With a seed, elements and scripts draw the numbers that Click draws, those of the C library's
/// `random` after `srandom(SEED)`: all threads from one sequence, which is the same in every run.
///
/// ```click
/// RandomSeed(7)
/// in -> RandomSample(0.5) -> a :: Counter -> Discard
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// > in 1.0.0.3 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "info")]
pub struct RandomSeed {
    /// The seed; one from the system unless given.
    #[arg]
    seed: Option<u32>,
}

impl Info for RandomSeed {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        facts.seed = self.seed;
        Ok(())
    }
}
