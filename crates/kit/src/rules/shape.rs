//! Masks and the hashes of keys under them.

use super::{Key, WORDS};
use crate::seed::Seed;

/// The words of a mask that are compared without a loop.
pub(super) const INLINE_WORDS: usize = 3;

/// Marks the number of a mask that has more words than [`INLINE_WORDS`].
pub(super) const WIDE: u32 = 1 << 30;

/// A mask, with the indices of its nonzero words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The first nonzero words; zero if there are fewer.
    masks: [u64; INLINE_WORDS],
    /// The indices of these words.
    words: [u8; INLINE_WORDS],
    /// See [`Shape::number`].
    number: u32,
    pub(super) mask: Key,
}

impl Shape {
    pub(super) fn new(mask: &Key, number: usize) -> Shape {
        let (mut words, mut masks) = ([0; INLINE_WORDS], [0; INLINE_WORDS]);
        let used = mask.0.iter().enumerate().filter(|(_, bits)| **bits != 0);
        let is_wide = used.clone().count() > INLINE_WORDS;
        for (place, (word, bits)) in used.take(INLINE_WORDS).enumerate() {
            (words[place], masks[place]) = (word as u8, *bits);
        }
        Shape { masks, words, number: number as u32 | if is_wide { WIDE } else { 0 }, mask: *mask }
    }

    /// Whether the mask has more than [`INLINE_WORDS`] nonzero words.
    #[inline]
    pub(super) fn is_wide(&self) -> bool {
        self.number & WIDE != 0
    }

    /// The mask's number, with the bit [`WIDE`] if [`Shape::is_wide`].
    #[inline]
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// The first words of a key under the mask.
    #[inline]
    pub(super) fn masked_words(&self, key: &Key) -> [u64; INLINE_WORDS] {
        std::array::from_fn(|at| key.0[usize::from(self.words[at]) % WORDS] & self.masks[at])
    }

    /// The key with these first words.
    pub(super) fn key(&self, near: &[u64; INLINE_WORDS]) -> Key {
        let mut key = Key::default();
        let places = self.words.iter().zip(near).zip(self.masks);
        for ((word, value), _) in places.filter(|(_, mask)| *mask != 0) {
            key.0[usize::from(*word)] = *value;
        }
        key
    }

    /// The hash of a key under this mask. It differs between masks.
    #[inline]
    pub(super) fn hash(&self, seed: &Seed, key: &Key) -> u64 {
        self.hash_of(seed, self.masked_words(key), key)
    }

    /// The same for a key whose first words are known.
    #[inline]
    pub(super) fn hash_of(&self, seed: &Seed, [a, b, c]: [u64; INLINE_WORDS], key: &Key) -> u64 {
        let hash = seed.mix_three(a, b, c ^ u64::from(self.number) << 48);
        if self.is_wide() { self.hash_all(seed, hash, key) } else { hash }
    }

    fn hash_all(&self, seed: &Seed, hash: u64, key: &Key) -> u64 {
        let words = key.0.iter().zip(self.mask.0);
        words.fold(hash, |hash, (word, mask)| seed.mix(hash, word & mask))
    }
}
