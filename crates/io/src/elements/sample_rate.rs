//! The probability with which each packet of a file is emitted.

use castanet_element::prelude::*;

/// A probability, in units of 1 / [`ONE`].
#[derive(Clone, Copy)]
pub(super) struct SampleRate(u32);

/// The probability 1.
const ONE: u32 = 1 << 28;

impl SampleRate {
    /// The rate of a probability from 0 to 1.
    pub(super) fn new(probability: f64) -> SampleRate {
        SampleRate((probability * f64::from(ONE)) as u32)
    }

    pub(super) fn probability(self) -> f64 {
        f64::from(self.0) / f64::from(ONE)
    }

    /// Draws a random number; whether the next packet is emitted.
    pub(super) fn takes(self, cx: &mut Cx) -> bool {
        self.0 >= ONE || cx.random_numbers().number() % ONE < self.0
    }
}
