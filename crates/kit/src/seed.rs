//! Seeds, which make hashes differ between tables.

use std::hash::{BuildHasher, RandomState};

/// The random key of a hash function.
#[derive(Clone, Copy, Debug)]
pub struct Seed([u64; 3]);

impl Seed {
    /// A seed that an attacker cannot know.
    pub fn random() -> Seed {
        let bits = |n: u64| RandomState::new().hash_one(n);
        Seed([bits(0), bits(1), bits(2) | 1])
    }

    /// A constant seed, for tests and measurements.
    pub const fn fixed() -> Seed {
        Seed([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d1])
    }

    /// A hash of two words: their product under the seed, folded, and multiplied again.
    #[inline]
    pub fn mix(&self, a: u64, b: u64) -> u64 {
        let [first, second, third] = self.0;
        fold(fold(a ^ first, b ^ second) ^ b, third)
    }

    /// A hash of three words, whose two products are independent.
    #[inline]
    pub fn mix_three(&self, a: u64, b: u64, c: u64) -> u64 {
        let [first, second, third] = self.0;
        let high = fold(a ^ first, b ^ second);
        let low = fold(c ^ second, b.rotate_left(32) ^ third);
        fold(high ^ low, third) ^ low
    }
}

/// The two halves of a 128-bit product, combined.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> u64::BITS) as u64
}
