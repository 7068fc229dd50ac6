//! The probability with which each packet of a file is emitted.

use castanet_element::prelude::*;

/// A probability, in units of 1 / [`ONE`].
#[derive(Clone, Copy)]
pub(super) struct SampleRate(u32);

/// The probability 1.
const ONE: u32 = 1 << 28;

impl SampleRate {
    /// The rate of the argument SAMPLE, which counts as 1 if it is more.
    pub(super) fn new(probability: f64, setup: &Setup) -> SampleRate {
        if probability > 1.0 {
            (setup.warn)("SAMPLE probability reduced to 1".into());
        } else if probability == 0.0 {
            (setup.warn)("SAMPLE probability is 0; emitting no packets".into());
        }
        SampleRate((probability.min(1.0) * f64::from(ONE)) as u32)
    }

    pub(super) fn probability(self) -> f64 {
        f64::from(self.0) / f64::from(ONE)
    }

    /// Draws a random number; whether the next packet is emitted.
    pub(super) fn takes(self, cx: &mut Cx) -> bool {
        self.0 >= ONE || cx.random_numbers().number() % ONE < self.0
    }
}
