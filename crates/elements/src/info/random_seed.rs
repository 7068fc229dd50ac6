//! `RandomSeed`: chance that is the same every time.

use castanet_engine::prelude::*;

/// Makes what elements do at random the same in every run, or different in each.
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
    /// The seed; without one it is taken from the system.
    #[arg]
    seed: Option<u64>,
}

impl Info for RandomSeed {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        facts.seed = self.seed;
        Ok(())
    }
}
