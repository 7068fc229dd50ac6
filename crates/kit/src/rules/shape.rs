//! A mask, and how keys are hashed under it.

use super::{Key, WORDS};
use crate::flow::Seed;

/// Words of a mask that are looked at without a loop.
pub(super) const NEAR: usize = 3;

/// Marks the number of a mask that has more words than [`NEAR`].
pub(super) const WIDE: u32 = 1 << 30;

/// A mask, and which of its words are not zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The first words that are not zero; zero, where there are fewer.
    masks: [u64; NEAR],
    /// Which words these are.
    words: [u8; NEAR],
    /// See [`Shape::number`].
    number: u32,
    pub(super) mask: Key,
}

impl Shape {
    pub(super) fn new(mask: &Key, number: usize) -> Shape {
        let (mut words, mut masks) = ([0; NEAR], [0; NEAR]);
        let used = mask.0.iter().enumerate().filter(|(_, bits)| **bits != 0);
        let is_wide = used.clone().count() > NEAR;
        for (place, (word, bits)) in used.take(NEAR).enumerate() {
            (words[place], masks[place]) = (word as u8, *bits);
        }
        Shape { masks, words, number: number as u32 | if is_wide { WIDE } else { 0 }, mask: *mask }
    }

    /// Whether it has more words than [`NEAR`].
    #[inline]
    pub(super) fn is_wide(&self) -> bool {
        self.number & WIDE != 0
    }

    /// Its number, with [`WIDE`] where there are more words than [`NEAR`].
    #[inline]
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// The first words of a key under the mask.
    #[inline]
    pub(super) fn near(&self, key: &Key) -> [u64; NEAR] {
        std::array::from_fn(|at| key.0[usize::from(self.words[at]) % WORDS] & self.masks[at])
    }

    /// A key of these first words.
    pub(super) fn key(&self, near: &[u64; NEAR]) -> Key {
        let mut key = Key::default();
        let places = self.words.iter().zip(near).zip(self.masks);
        for ((word, value), _) in places.filter(|(_, mask)| *mask != 0) {
            key.0[usize::from(*word)] = *value;
        }
        key
    }

    /// A hash of a key under this mask; it differs from mask to mask.
    #[inline]
    pub(super) fn hash(&self, seed: &Seed, key: &Key) -> u64 {
        self.hash_of(seed, self.near(key), key)
    }

    /// The same of a key whose first words are these.
    #[inline]
    pub(super) fn hash_of(&self, seed: &Seed, [a, b, c]: [u64; NEAR], key: &Key) -> u64 {
        let hash = seed.mix_three(a, b, c ^ u64::from(self.number) << 48);
        if self.is_wide() { self.hash_all(seed, hash, key) } else { hash }
    }

    fn hash_all(&self, seed: &Seed, hash: u64, key: &Key) -> u64 {
        let words = key.0.iter().zip(self.mask.0);
        words.fold(hash, |hash, (word, mask)| seed.mix(hash, word & mask))
    }
}
