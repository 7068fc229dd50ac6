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

/// The C library's `random`, from which Click draws: an additive generator (Knuth, volume 2, 3.2.2).
#[derive(Clone, Debug)]
pub struct CRandom {
    state: [u32; DEGREE],
    at: usize,
}

const DEGREE: usize = 31;
const LAG: usize = 3;

impl CRandom {
    /// The generator as `srandom(seed)` leaves it.
    pub fn new(seed: u32) -> CRandom {
        let mut state = [0; DEGREE];
        // Park and Miller's generator fills the state.
        let mut word = i64::from(seed.max(1) as i32);
        for slot in &mut state {
            *slot = word as u32;
            word = (word * 16807).rem_euclid(i32::MAX.into());
        }
        let mut random = CRandom { state, at: LAG };
        (0..10 * DEGREE).for_each(|_| {
            random.bits();
        });
        random
    }

    /// The next 31 bits.
    pub fn bits(&mut self) -> u32 {
        let lagged = self.state[(self.at + DEGREE - LAG) % DEGREE];
        let slot = &mut self.state[self.at];
        *slot = slot.wrapping_add(lagged);
        let number = *slot >> 1;
        self.at = (self.at + 1) % DEGREE;
        number
    }
}

/// A number from `low` to `high`, both included, of draws of 31 bits, by Click's rule: two numbers
/// are chosen by bit 14, more of them by the quotient of a draw, and a draw beyond the largest
/// multiple of their number is repeated. `low` if it is not below `high`.
pub fn in_range(low: u32, high: u32, mut draw: impl FnMut() -> u32) -> u32 {
    /// How many different draws there are.
    const DRAWS: u32 = 1 << 31;
    let Some(span) = high.checked_sub(low) else { return low };
    match span {
        1 => low + (draw() >> 14 & 1),
        DRAWS.. => loop {
            let wide = draw() << 17 ^ draw() >> 14;
            if wide <= span {
                return low + wide;
            }
        },
        _ => {
            let each = DRAWS / (span + 1);
            loop {
                let number = draw() / each;
                if number <= span {
                    return low + number;
                }
            }
        }
    }
}

/// A number from 0 to 1, exclusive.
fn fraction(bits: u64) -> f64 {
    const BITS: u32 = 53;
    (bits >> (u64::BITS - BITS)) as f64 / (1u64 << BITS) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_are_those_of_the_c_library() {
        let first = |seed| {
            let mut random = CRandom::new(seed);
            [(); 3].map(|()| random.bits())
        };
        // The first values of the C library after `srandom`.
        assert_eq!(first(1), [1804289383, 846930886, 1681692777]);
        assert_eq!(first(0), first(1));
        assert_eq!(first(5), [590011675, 99788765, 2131925610]);
    }

    #[test]
    fn ranges_are_those_of_click() {
        let mut random = CRandom::new(5);
        assert_eq!([(); 3].map(|()| in_range(0, 99, || random.bits())), [27, 4, 99]);
        // A draw beyond the largest multiple is repeated: three times 715827882 are 2^31 - 2.
        let mut draws = [0x7fff_ffff, 0x7fff_fffe, 715_827_882].into_iter();
        assert_eq!(in_range(10, 12, || draws.next().unwrap_or_default()), 11);
        assert_eq!(draws.next(), None);
        assert_eq!(in_range(5, 6, || 1 << 14), 6);
        assert_eq!(in_range(5, 6, || !(1 << 14)), 5);
        assert_eq!((in_range(7, 7, || 99), in_range(9, 7, || 99)), (7, 9));
        assert_eq!(in_range(0, i32::MAX as u32, || 1234), 1234);
        assert_eq!(in_range(1, u32::MAX - 1, || 0), 1);
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
