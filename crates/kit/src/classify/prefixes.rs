//! Tests as sets of masked words, one prefix of numbers each.

use super::pattern::Test;
use crate::rules::prefixes;

/// A mask and the value of a word under it.
pub(crate) type Bits = (u32, u32);

/// The complement of a test as tests of the same word.
pub(crate) fn complement(test: &Test) -> Vec<Test> {
    let below = test.lo.checked_sub(1).map(|hi| Test { lo: 0, hi, ..*test });
    let above = test.hi.checked_add(1).map(|lo| Test { lo, hi: test.mask, ..*test });
    let is_some = |test: &Test| test.lo <= test.hi;
    below.into_iter().chain(above).filter(is_some).collect()
}

/// The intersection of two tests of the same word and mask; `None` if it is empty.
pub(crate) fn intersection(a: &Test, b: &Test) -> Option<Test> {
    let test = Test { lo: a.lo.max(b.lo), hi: a.hi.min(b.hi), ..*a };
    (test.lo <= test.hi).then_some(test)
}

/// The words that pass a test; `None` if the mask is not contiguous.
pub(crate) fn accepted_words(test: &Test) -> Option<Vec<Bits>> {
    if test.is_equality() {
        let fits = test.lo & !test.mask == 0;
        return Some(if fits { vec![(test.mask, test.lo)] } else { Vec::new() });
    }
    let (shift, width) = (test.mask.trailing_zeros(), test.mask.count_ones());
    if shift + width + test.mask.leading_zeros() != u32::BITS {
        return None;
    }
    // The smallest and the largest number that the test accepts.
    let last = u64::from(test.mask) >> shift;
    let low = (u64::from(test.lo) + (1 << shift) - 1) >> shift;
    let high = (u64::from(test.hi) >> shift).min(last);
    let rows = prefixes(low.into(), high.into(), width);
    Some(rows.map(|(mask, value)| ((mask << shift) as u32, (value << shift) as u32)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Base;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_word_is_within_or_outside(
            mask in prop::sample::select(vec![0xff_u32, 0x3c, 0x5, 0xf0f0_0000, 0xffff_ffff, 1 << 31, 1]),
            lo in any::<u32>(),
            hi in any::<u32>(),
            near in prop::collection::vec(-2_i64..3, 32),
            words in prop::collection::vec(any::<u32>(), 32),
            equal in any::<bool>(),
        ) {
            let (lo, hi) = (lo.min(hi) & mask, lo.max(hi) & mask);
            let (lo, hi) = (lo.min(hi), lo.max(hi));
            let test = Test { base: Base::Packet, offset: 0, mask, lo, hi: if equal { lo } else { hi } };
            let is_one = mask == mask >> mask.trailing_zeros() << mask.trailing_zeros()
                && (mask >> mask.trailing_zeros()).trailing_ones() == mask.count_ones();
            let Some(inside) = accepted_words(&test) else {
                prop_assert!(!is_one && !test.is_equality());
                return Ok(());
            };
            let complement: Option<Vec<_>> = complement(&test).iter().map(accepted_words).collect();
            let Some(complement) = complement.map(|it| it.concat()) else {
                prop_assert!(!is_one);
                return Ok(());
            };
            let near = near.iter().flat_map(|by| [lo, hi].map(|it| (i64::from(it) + by) as u32));
            for word in words.into_iter().chain(near) {
                let count = |rows: &[Bits]| rows.iter().filter(|it| word & it.0 == it.1).count();
                let accepts = usize::from(test.accepts(word));
                prop_assert_eq!((count(&inside), count(&complement)), (accepts, 1 - accepts), "{:x}", word);
            }
        }
    }
}
