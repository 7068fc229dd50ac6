//! Recent rates, as handlers read them.

use castanet_element::prelude::*;
use castanet_kit::ewma::RateEwma;

/// A rate at the time of the read, which decays while no packets come.
pub(super) fn per_second<const SCALE: u32>(mut rate: RateEwma<4, SCALE>, now: Time) -> f64 {
    rate.update(0, now.0.unsigned_abs());
    rate.text().parse().unwrap_or(0.0)
}
