//! The bits that all rules of a mask have in common.

use super::index::GroupId;
use super::{Key, WORDS};

/// Bits that have the same value in all rules of a mask: a packet that differs there needs no
/// lookup. Only bits of one word, the one that has most of them.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct CommonBits {
    /// The mask's position in its block.
    pub(super) position: u8,
    word: u8,
    sole: SoleGroup,
    mask: u64,
    value: u64,
}

/// The only group of a mask, which needs no lookup.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) enum SoleGroup {
    /// The mask has several groups, or had.
    #[default]
    None,
    /// A packet with the common bits has the value of this group: the mask has no other bits.
    Found(GroupId),
    /// A packet with the common bits has to be compared with this group.
    Compared(GroupId),
}

impl CommonBits {
    /// The common bits of a mask with the value of a single group.
    pub(super) fn of_group(position: u8, mask: &Key, value: &Key, group: GroupId) -> CommonBits {
        let common = CommonBits::of(position, mask, value);
        let is_whole = mask.0.iter().filter(|bits| **bits != 0).count() <= 1;
        let sole = if is_whole { SoleGroup::Found } else { SoleGroup::Compared };
        CommonBits { sole: sole(group), ..common }
    }

    fn of(position: u8, mask: &Key, value: &Key) -> CommonBits {
        let word = (0..WORDS).max_by_key(|&word| mask.0[word].count_ones()).unwrap_or_default();
        let (mask, value) = (mask.0[word], value.0[word]);
        CommonBits { position, word: word as u8, sole: SoleGroup::None, mask, value }
    }

    /// The mask's only group.
    #[inline]
    pub(super) fn sole_group(&self) -> SoleGroup {
        self.sole
    }

    /// Adds the value of another group. `all` holds the bits that all values have in common, and the
    /// first value. Returns whether anything changed.
    pub(super) fn with(&mut self, all: &mut (Key, Key), value: &Key) -> bool {
        let (mask, first) = all;
        for word in 0..WORDS {
            mask.0[word] &= !(value.0[word] ^ first.0[word]);
        }
        let changes = self.sole != SoleGroup::None || !self.holds(value);
        if changes {
            *self = CommonBits::of(self.position, mask, &(*first & *mask));
        }
        changes
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
