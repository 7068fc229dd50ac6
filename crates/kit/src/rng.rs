//! Pseudorandom numbers from a seed.

/// The xorshift64* generator: fast, and good enough for traffic.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator for `seed`.
    pub fn new(seed: u64) -> Rng {
        // Neighbouring seeds must give unrelated sequences, and the state must not be 0.
        Rng(seed.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9).max(1))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 to 1, exclusive.
    pub fn fraction(&mut self) -> f64 {
        fraction(self.bits())
    }

    /// The nanoseconds between two events of a Poisson process with `rate` events per second.
    pub fn exponential_gap(&mut self, rate: f64) -> u64 {
        let seconds = -(1.0 - self.fraction()).ln() / rate;
        (seconds * 1e9) as u64
    }
}

/// A number from 0 to 1, exclusive.
fn fraction(bits: u64) -> f64 {
    const BITS: u32 = 53;
    (bits >> (u64::BITS - BITS)) as f64 / (1u64 << BITS) as f64
}

/// Applies `change` to each bit of `bytes` with probability `p`, with the byte and the bit's mask.
/// Needs as many random numbers as bits change, not one for each bit.
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
    // The distance to the next changed bit has a geometric distribution.
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
            let (mut bytes, mut rng) = (vec![0u8; 100_000], Rng::new(3));
            flip_bits(&mut bytes, p, |byte, bit| *byte ^= bit, || rng.bits());
            let share = bytes.iter().map(|byte| byte.count_ones()).sum::<u32>();
            let share = f64::from(share) / 800_000.0;
            assert!((share - p).abs() < 0.003, "{share} rather than {p}");
        }
    }

    #[test]
    fn gaps_are_exponential() {
        const EVENTS: u64 = 100_000;
        let mut rng = Rng::new(7);
        let gaps: Vec<u64> = (0..EVENTS).map(|_| rng.exponential_gap(1000.0)).collect();
        let mean = gaps.iter().sum::<u64>() / EVENTS;
        assert!(mean.abs_diff(1_000_000) < 15_000, "{mean}");
        // An exponential variable exceeds its mean with probability 1/e.
        let long = gaps.iter().filter(|&&gap| gap > 1_000_000).count() as f64 / EVENTS as f64;
        assert!((long - (-1f64).exp()).abs() < 0.01, "{long}");
        let mut same = Rng::new(7);
        assert!(gaps.iter().take(100).all(|&gap| gap == same.exponential_gap(1000.0)));
        assert_ne!(Rng::new(8).bits(), Rng::new(7).bits());
    }

    #[test]
    fn fractions_fill_their_range() {
        let mut rng = Rng::new(0);
        let all: Vec<f64> = (0..10_000).map(|_| rng.fraction()).collect();
        assert!(all.iter().all(|f| (0.0..1.0).contains(f)));
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
