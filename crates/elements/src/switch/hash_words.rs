//! The outputs of `HashSwitch` by words of packets without descriptors.

use super::hash_switch::masked;
use castanet_element::packet::BurstBytes;
use castanet_element::prelude::*;
use castanet_element::wire::bits;
use std::ops::Range;

/// Packets whose words are loaded before any is used, so that a processor sums several words at once.
const WORDS: usize = 64;

/// Writes the fates of packets by a hash of the bytes in `range`, of which `mask` is left. `false`, and nothing is done,
/// if these are not four or eight bytes, or a packet lacks one of them.
#[inline(always)]
pub(super) fn decide(range: Range<usize>, mask: u8, bytes: &BurstBytes, fates: &mut [u8]) -> bool {
    let has_two = match range.len() {
        4 => false,
        8 => true,
        _ => return false,
    };
    let mut first = 0;
    for fates in fates.chunks_mut(WORDS) {
        let (mut a, mut b) = ([0; WORDS], [0; WORDS]);
        let count = fates.len();
        // That all packets have these bytes is known after the first words.
        if !bytes.load_words(range.start, first, &mut a[..count])
            || has_two && !bytes.load_words(range.start + 4, first, &mut b[..count])
        {
            return false;
        }
        for ((fate, a), b) in fates.iter_mut().zip(a).zip(b) {
            *fate = Port::known(masked(bits::sum_of_words(a, b), mask)).index();
        }
        first += count;
    }
    true
}
