//! Random numbers that a seed makes the same every time.

/// xorshift64*: fast, and good enough for traffic.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Numbers that follow from `seed`.
    pub fn new(seed: u64) -> Chance {
        // Neighbouring seeds are to have nothing in common, and none may be 0.
        Chance(seed.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9).max(1))
    }

    /// Sixty-four bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 up to, but not including, 1.
    pub fn fraction(&mut self) -> f64 {
        fraction(self.bits())
    }

    /// Nanoseconds from one event to the next, where there are `rate` a second on
    /// average and none knows of another (a Poisson process).
    pub fn gap(&mut self, rate: f64) -> u64 {
        let seconds = -(1.0 - self.fraction()).ln() / rate;
        (seconds * 1e9) as u64
    }
}

/// A number from 0 up to, but not including, 1.
fn fraction(bits: u64) -> f64 {
    const BITS: u32 = 53;
    (bits >> (u64::BITS - BITS)) as f64 / (1u64 << BITS) as f64
}

/// Lets `change` have each bit of `bytes`, in its byte, with probability `p`; asks
/// for as many random numbers as bits change, not as there are.
pub fn flip_bits(
    bytes: &mut [u8],
    p: f64,
    change: impl Fn(&mut u8, u8),
    mut random: impl FnMut() -> u64,
) {
    const BITS: usize = u8::BITS as usize;
    if p <= 0.0 {
        return;
    }
    let all = bytes.len() * BITS;
    // Bits up to the next that changes: a geometric distribution.
    let mut gap = || ((1.0 - fraction(random())).ln() / (1.0 - p).ln()) as usize;
    let mut at = if p < 1.0 { gap() } else { 0 };
    while at < all {
        change(&mut bytes[at / BITS], 0x80 >> (at % BITS));
        at = at.saturating_add(if p < 1.0 { gap() } else { 0 }).saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_change_as_often_as_they_should() {
        for p in [0.0, 0.001, 0.25, 0.9, 1.0] {
            let (mut bytes, mut chance) = (vec![0u8; 100_000], Chance::new(3));
            flip_bits(&mut bytes, p, |byte, bit| *byte ^= bit, || chance.bits());
            let share = bytes.iter().map(|byte| byte.count_ones()).sum::<u32>();
            let share = f64::from(share) / 800_000.0;
            assert!((share - p).abs() < 0.003, "{share} rather than {p}");
        }
    }

    #[test]
    fn gaps_are_exponential() {
        const EVENTS: u64 = 100_000;
        let mut chance = Chance::new(7);
        let gaps: Vec<u64> = (0..EVENTS).map(|_| chance.gap(1000.0)).collect();
        let mean = gaps.iter().sum::<u64>() / EVENTS;
        assert!(mean.abs_diff(1_000_000) < 15_000, "{mean}");
        // An exponential distribution has passed its mean with probability 1/e.
        let long = gaps.iter().filter(|&&gap| gap > 1_000_000).count() as f64 / EVENTS as f64;
        assert!((long - (-1f64).exp()).abs() < 0.01, "{long}");
        let mut same = Chance::new(7);
        assert!(gaps.iter().take(100).all(|&gap| gap == same.gap(1000.0)));
        assert_ne!(Chance::new(8).bits(), Chance::new(7).bits());
    }

    #[test]
    fn fractions_fill_their_range() {
        let mut chance = Chance::new(0);
        let all: Vec<f64> = (0..10_000).map(|_| chance.fraction()).collect();
        assert!(all.iter().all(|f| (0.0..1.0).contains(f)));
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
