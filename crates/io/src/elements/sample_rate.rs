//! The probability with which each packet of a file is emitted.

use castanet_element::prelude::*;
use castanet_kit::probability::Probability;

/// The argument SAMPLE.
#[derive(Clone, Copy)]
pub(super) struct SampleRate(Probability);

impl SampleRate {
    /// The rate of the argument, which counts as 1 if it is more.
    pub(super) fn new(probability: f64, setup: &Setup) -> SampleRate {
        if probability > 1.0 {
            (setup.warn)("SAMPLE probability reduced to 1".into());
        } else if probability == 0.0 {
            (setup.warn)("SAMPLE probability is 0; emitting no packets".into());
        }
        SampleRate(Probability::nearest(probability))
    }

    /// The fewest digits that mean this probability.
    pub(super) fn probability(self) -> String {
        self.0.to_string()
    }

    /// Draws a random number; whether the next packet is emitted.
    pub(super) fn takes(self, cx: &mut Cx) -> bool {
        self.0.is_certain() || self.0.occurs(cx.random_numbers().number())
    }
}
