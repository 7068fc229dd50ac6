//! What makes hashes differ from table to table.

use std::hash::{BuildHasher, RandomState};

/// A random key of hashes.
#[derive(Clone, Copy, Debug)]
pub struct Seed([u64; 3]);

impl Seed {
    /// One that nobody can know.
    pub fn random() -> Seed {
        let bits = |n: u64| RandomState::new().hash_one(n);
        Seed([bits(0), bits(1), bits(2) | 1])
    }

    /// The same each time, for tests and measurements.
    pub const fn fixed() -> Seed {
        Seed([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d1])
    }

    /// A hash of two words: their product under the seed, folded, and that once more.
    #[inline]
    pub fn mix(&self, a: u64, b: u64) -> u64 {
        let [first, second, third] = self.0;
        fold(fold(a ^ first, b ^ second) ^ b, third)
    }

    /// A hash of three words, of which two products do not wait for each other.
    #[inline]
    pub fn mix_three(&self, a: u64, b: u64, c: u64) -> u64 {
        let [first, second, third] = self.0;
        let high = fold(a ^ first, b ^ second);
        let low = fold(c ^ second, b.rotate_left(32) ^ third);
        fold(high ^ low, third) ^ low
    }
}

/// A product of 128 bits, both halves in one word.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> u64::BITS) as u64
}
