//! The bits that all rules of a mask have in common.

use super::{Key, WORDS};

/// Bits that have the same value in all rules of a mask: a packet that differs there needs no
/// lookup. Only bits of one word, the one that has most of them.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct CommonBits {
    /// The mask's position in its block.
    pub(super) position: u8,
    word: u8,
    mask: u64,
    value: u64,
}

impl CommonBits {
    /// The common bits of a mask with a single value.
    pub(super) fn of(position: u8, mask: &Key, value: &Key) -> CommonBits {
        let word = (0..WORDS).max_by_key(|&word| mask.0[word].count_ones()).unwrap_or_default();
        CommonBits { position, word: word as u8, mask: mask.0[word], value: value.0[word] }
    }

    /// Adds a value. `all` holds the bits that all values have in common, and the first value.
    /// Returns whether the common bits changed.
    pub(super) fn with(&mut self, all: &mut (Key, Key), value: &Key) -> bool {
        let (mask, first) = all;
        for word in 0..WORDS {
            mask.0[word] &= !(value.0[word] ^ first.0[word]);
        }
        let differs = !self.holds(value);
        if differs {
            *self = CommonBits::of(self.position, mask, &(*first & *mask));
        }
        differs
    }

    /// Whether a key has these bits.
    #[inline]
    pub(super) fn holds(&self, key: &Key) -> bool {
        key.0[usize::from(self.word) % WORDS] & self.mask == self.value
    }

    /// Whether a key differs in these bits, as far as they are `known`.
    pub(super) fn differs(&self, key: &Key, known: &Key) -> bool {
        let word = usize::from(self.word);
        (key.0[word] ^ self.value) & self.mask & known.0[word] != 0
    }
}
