//! Probabilities as Click draws them: in units of 2^-28.

use crate::units::fixed_point;
use std::fmt;

/// Bits behind the point of a probability and of a draw.
const FRACTION_BITS: u32 = 28;
/// The probability 1.
const ONE: u32 = 1 << FRACTION_BITS;

/// A probability. It prints with the fewest digits that mean it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probability(u32);

impl Probability {
    /// The nearest probability to `p`: 0 below 0, 1 above 1.
    pub fn nearest(p: f64) -> Probability {
        Probability((p.clamp(0.0, 1.0) * f64::from(ONE)).round() as u32)
    }

    /// The probability that the event does not occur.
    pub fn complement(self) -> Probability {
        Probability(ONE - self.0)
    }

    /// Whether it is 1.
    pub fn is_certain(self) -> bool {
        self.0 == ONE
    }

    /// Whether the event occurs, given a random number of at least 28 bits.
    #[inline]
    pub fn occurs(self, random: u32) -> bool {
        random % ONE < self.0
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&fixed_point(self.0.into(), FRACTION_BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_is_the_share_of_all_draws() {
        let quarter = Probability::nearest(0.25);
        assert!(quarter.occurs(ONE / 4 - 1) && !quarter.occurs(ONE / 4));
        assert!(quarter.occurs(ONE) && !quarter.occurs(u32::MAX), "the lower bits decide");
        let (never, certain) = (Probability::nearest(-1.0), Probability::nearest(2.0));
        assert!(!never.occurs(0) && certain.occurs(u32::MAX));
        assert!(certain.is_certain() && !never.is_certain() && !quarter.is_certain());
        assert_eq!(never.complement(), certain);
    }

    #[test]
    fn it_prints_with_the_fewest_digits() {
        for (p, text) in [(0.0, "0"), (0.1, "0.1"), (0.75, "0.75"), (1.0, "1")] {
            assert_eq!(Probability::nearest(p).to_string(), text);
        }
        assert_eq!(Probability::nearest(0.9).complement().to_string(), "0.1");
    }
}
