//! Random early detection: drops packets before a queue is full.
//!
//! Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance" (1993), in the
//! gentle variant of 1997: above the upper threshold the probability rises further, to one at twice
//! the threshold.

use crate::units::fixed_point;

/// Fraction bits of an average length.
const SCALE: u32 = 10;
/// A probability of one.
const ONE: u64 = 1 << 16;
/// The time for which an empty queue counts as one observation, in nanoseconds.
const TICK: u64 = 20_000_000;
/// After so many observations of an empty queue the average is zero.
const MAX_OBSERVATIONS: u64 = 100;

/// The largest threshold.
pub const MAX_THRESH: u32 = (1 << 21) - 1;

/// The drop probability as a function of the average length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// No packet is dropped up to this length.
    pub min: u32,
    /// The length at which the probability is `max_p`.
    pub max: u32,
    /// A probability, from 0 to 1.
    pub max_p: f64,
    /// Whether the probability rises from `max_p` to one between `max` and twice `max`, rather than
    /// being one above `max`.
    pub gentle: bool,
}

impl Curve {
    /// The probability at this scaled average, in units of 1/[`ONE`]; `None` outside of the curve.
    fn probability(&self, average: u64) -> Option<u64> {
        let (min, max) = (u64::from(self.min) << SCALE, u64::from(self.max) << SCALE);
        let max_p = (self.max_p * ONE as f64) as u64;
        match average {
            low if low <= min => None,
            high if high > if self.gentle { 2 * max } else { max } => None,
            inner if inner <= max => Some(max_p * (inner - min) / (max - min)),
            gentle => Some(max_p + (ONE - max_p) * (gentle - max) / max.max(1)),
        }
    }
}

/// The state of one detector.
#[derive(Clone, Debug, Default)]
pub struct Red {
    /// The average length, scaled.
    average: u64,
    /// Packets since the last drop; `None` while the average is outside of the curve.
    since: Option<u64>,
    /// The random number that determines the next drop.
    random: u64,
    /// The tick at which the queue was last seen empty.
    empty: Option<u64>,
}

impl Red {
    /// The average length in decimal.
    pub fn average_text(&self) -> String {
        fixed_point(self.average, SCALE)
    }

    /// Updates the average with the queue's length at the arrival of a packet. An empty queue
    /// counts by time.
    pub fn observe(&mut self, length: usize, stability: u32, now: u64) {
        let times = match length {
            0 => {
                let tick = now / TICK;
                let last = self.empty.replace(tick);
                last.map_or(1, |last| tick.saturating_sub(last))
            }
            _ => {
                self.empty = None;
                1
            }
        };
        if times >= MAX_OBSERVATIONS {
            self.average = (length as u64) << SCALE;
            return;
        }
        let half = (1i128 << stability) >> 1;
        for _ in 0..times {
            let target = ((length as i128) << SCALE) + half;
            let moved =
                i128::from(self.average) + ((target - i128::from(self.average)) >> stability);
            self.average = u64::try_from(moved).unwrap_or(0);
        }
    }

    /// Whether to drop the packet; `random` returns uniform bits.
    pub fn drops(&mut self, curve: &Curve, mut random: impl FnMut() -> u64) -> bool {
        let Some(p) = curve.probability(self.average) else {
            self.since = None;
            return self.average > u64::from(curve.min) << SCALE;
        };
        let since = self.since.map_or(0, |since| since + 1);
        let hit = since > 0 && p > 0 && since > self.random / p;
        if hit || since == 0 {
            self.random = random() % ONE;
        }
        self.since = Some(if hit { 0 } else { since });
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A detector with this average.
    fn at(length: u64) -> Red {
        Red { average: length << SCALE, ..Red::default() }
    }

    /// The fraction of packets that are dropped.
    fn rate(length: u64, curve: &Curve) -> f64 {
        const PACKETS: u32 = 40_000;
        let (mut red, mut seed) = (at(length), 9u64);
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed >> 33
        };
        let dropped = (0..PACKETS).filter(|_| red.drops(curve, &mut random)).count();
        dropped as f64 / f64::from(PACKETS)
    }

    #[test]
    fn the_curve_is_gentle() {
        let curve = Curve { min: 10, max: 50, max_p: 0.1, gentle: true };
        assert_eq!((rate(10, &curve), rate(101, &curve)), (0.0, 1.0));
        let mut last = 0.0;
        for length in [15, 25, 40, 50, 60, 75, 90] {
            let rate = rate(length, &curve);
            assert!(rate > last, "{length}: {rate} after {last}");
            last = rate;
        }
        // Gaps are uniform from 1 to 1/p, with mean 1/(2p).
        let at_max = rate(50, &curve);
        assert!((0.15..0.21).contains(&at_max), "{at_max}");
    }

    #[test]
    fn a_step_and_never_at_all() {
        let step = Curve { min: 5, max: 5, max_p: 0.0, gentle: true };
        assert_eq!((rate(5, &step), rate(11, &step)), (0.0, 1.0));
        let never = Curve { min: 5, max: 50, max_p: 0.0, gentle: true };
        assert_eq!(rate(50, &never), 0.0);
        assert_eq!(rate(1, &Curve { min: 0, max: 0, max_p: 1.0, gentle: true }), 1.0);
        let abrupt = Curve { min: 5, max: 50, max_p: 0.0, gentle: false };
        assert_eq!((rate(50, &abrupt), rate(51, &abrupt)), (0.0, 1.0));
    }

    #[test]
    fn averages_move_by_stability_and_rest() {
        let mut red = Red::default();
        (0..200).for_each(|_| red.observe(100, 4, 0));
        let full: f64 = red.average_text().parse().unwrap();
        assert!((99.9..=100.0).contains(&full), "{full}");
        red.observe(0, 4, TICK);
        let after_one: f64 = red.average_text().parse().unwrap();
        assert!((93.0..95.0).contains(&after_one), "{after_one}");
        red.observe(0, 4, 3 * TICK);
        let after_three: f64 = red.average_text().parse().unwrap();
        assert!((81.0..84.0).contains(&after_three), "{after_three}");
        red.observe(0, 4, 200 * TICK);
        assert_eq!(red.average_text(), "0");
    }
}
