//! What all rules of a mask have in common.

use super::{Key, WORDS};

/// Bits of which all rules of a mask say the same: where a packet differs, it need not be
/// looked up. Of one word, where they are most.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Common {
    /// The mask's place.
    pub(super) place: u8,
    word: u8,
    mask: u64,
    value: u64,
}

impl Common {
    /// What the only value of a mask says.
    pub(super) fn of(place: u8, mask: &Key, value: &Key) -> Common {
        let most = (0..WORDS).max_by_key(|&word| mask.0[word].count_ones()).unwrap_or_default();
        Common { place, word: most as u8, mask: mask.0[most], value: value.0[most] }
    }

    /// With another value; `all` are the bits that all had in common, and one of the values.
    /// Whether that changes anything.
    pub(super) fn with(&mut self, all: &mut (Key, Key), value: &Key) -> bool {
        let (mask, first) = all;
        for word in 0..WORDS {
            mask.0[word] &= !(value.0[word] ^ first.0[word]);
        }
        let differs = !self.holds(value);
        if differs {
            *self = Common::of(self.place, mask, &(*first & *mask));
        }
        differs
    }

    /// Whether a key has these bits.
    #[inline]
    pub(super) fn holds(&self, key: &Key) -> bool {
        key.0[usize::from(self.word) % WORDS] & self.mask == self.value
    }

    /// Whether a key has others of these bits, as far as those are `known`.
    pub(super) fn differs(&self, key: &Key, known: &Key) -> bool {
        let word = usize::from(self.word);
        (key.0[word] ^ self.value) & self.mask & known.0[word] != 0
    }
}
