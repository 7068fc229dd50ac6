//! How many of a file's packets are emitted.

use castanet_element::prelude::*;

/// Of [`ALWAYS`] packets, how many are emitted.
#[derive(Clone, Copy)]
pub(super) struct Sampling(u32);

/// The chance of being emitted always.
const ALWAYS: u32 = 1 << 28;

impl Sampling {
    /// Each packet with this probability, from 0 to 1.
    pub(super) fn new(probability: f64) -> Sampling {
        Sampling((probability * f64::from(ALWAYS)) as u32)
    }

    pub(super) fn probability(self) -> f64 {
        f64::from(self.0) / f64::from(ALWAYS)
    }

    /// Whether the next packet is emitted.
    pub(super) fn takes(self, cx: &mut Cx) -> bool {
        self.0 >= ALWAYS || cx.random() as u32 % ALWAYS < self.0
    }
}
