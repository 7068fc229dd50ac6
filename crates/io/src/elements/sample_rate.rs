//! The probability with which each packet of a file is emitted.

use castanet_element::prelude::*;
use castanet_kit::units::fixed_point;

/// A probability, in units of 1 / [`ONE`].
#[derive(Clone, Copy)]
pub(super) struct SampleRate(u32);

/// Bits of a probability behind the point.
const FRACTION_BITS: u32 = 28;
/// The probability 1.
const ONE: u32 = 1 << FRACTION_BITS;

impl SampleRate {
    /// The rate of the argument SAMPLE, which counts as 1 if it is more.
    pub(super) fn new(probability: f64, setup: &Setup) -> SampleRate {
        if probability > 1.0 {
            (setup.warn)("SAMPLE probability reduced to 1".into());
        } else if probability == 0.0 {
            (setup.warn)("SAMPLE probability is 0; emitting no packets".into());
        }
        SampleRate((probability.min(1.0) * f64::from(ONE)).round() as u32)
    }

    /// The fewest digits that mean this probability.
    pub(super) fn probability(self) -> String {
        fixed_point(self.0.into(), FRACTION_BITS)
    }

    /// Draws a random number; whether the next packet is emitted.
    pub(super) fn takes(self, cx: &mut Cx) -> bool {
        self.0 >= ONE || cx.random_numbers().number() % ONE < self.0
    }
}
