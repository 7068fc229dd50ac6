//! The outputs of `HashSwitch` by words of packets without descriptors, of which processors take several at once.

use super::hash_switch::masked;
use castanet_element::packet::BurstBytes;
use castanet_element::prelude::*;
use std::ops::Range;

/// Packets whose words are loaded before any is used.
const WORDS: usize = 64;
/// Every other byte of a word.
const HALF: u32 = 0x00ff_00ff;

/// Writes the fates of packets by a hash of the bytes in `range`, an address or two, of which `mask` is left; `false` if
/// they are others, or a packet lacks them.
#[inline(always)]
pub(super) fn decide(range: Range<usize>, mask: u8, bytes: &BurstBytes, fates: &mut [u8]) -> bool {
    let length = range.len();
    if !matches!(length, 4 | 8) {
        return false;
    }
    let mut first = 0;
    for fates in fates.chunks_mut(WORDS) {
        let (mut a, mut b) = ([0; WORDS], [0; WORDS]);
        let count = fates.len();
        if !bytes.load_words(range.start, first, &mut a[..count])
            || length == 8 && !bytes.load_words(range.start + 4, first, &mut b[..count])
        {
            return false;
        }
        for ((fate, a), b) in fates.iter_mut().zip(a).zip(b) {
            // Two sums of four bytes at most in 16 bits each, and their sum.
            let pairs = (a & HALF) + (a >> 8 & HALF) + (b & HALF) + (b >> 8 & HALF);
            *fate = Port::known(masked((pairs + (pairs >> 16)) & 0xffff, mask)).index();
        }
        first += count;
    }
    true
}
