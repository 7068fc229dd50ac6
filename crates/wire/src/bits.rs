//! Bit fields of a header whose offset and width are known only at run time.

/// Reads the `count` bits (at most 128) from bit `first` on as a number; `None` if
/// `bytes` is too short.
#[inline]
pub fn get(bytes: &[u8], first: usize, count: usize) -> Option<u128> {
    let end = first + count;
    let bytes = bytes.get(first / 8..end.div_ceil(8))?;
    let number = bytes.iter().fold(0u128, |n, &byte| n << 8 | u128::from(byte));
    Some(number >> (end.next_multiple_of(8) - end) & low_mask(count))
}

/// Writes the low `count` bits of `number` from bit `first` on; returns `false` if
/// `bytes` is too short.
#[inline]
pub fn set(bytes: &mut [u8], first: usize, count: usize, number: u128) -> bool {
    let end = first + count;
    let Some(bytes) = bytes.get_mut(first / 8..end.div_ceil(8)) else { return false };
    let behind = end.next_multiple_of(8) - end;
    let (mut number, mut mask) = ((number & low_mask(count)) << behind, low_mask(count) << behind);
    for byte in bytes.iter_mut().rev() {
        *byte = *byte & !(mask as u8) | number as u8;
        (number, mask) = (number >> 8, mask >> 8);
    }
    true
}

/// The sum of the bytes.
#[inline]
pub fn sum_of_bytes(bytes: &[u8]) -> u32 {
    /// Every other byte of a word.
    const HALF: u64 = 0x00ff_00ff_00ff_00ff;
    let (words, rest) = bytes.as_chunks::<8>();
    let of_words = words.iter().fold(0u32, |sum, word| {
        let word = u64::from_ne_bytes(*word);
        // Four sums of two bytes in 16 bits each, and their sum in the highest 16.
        let pairs = (word & HALF) + (word >> 8 & HALF);
        sum.wrapping_add((pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as u32)
    });
    rest.iter().fold(of_words, |sum, &byte| sum.wrapping_add(byte.into()))
}

/// The sum of the bytes of two words.
#[inline]
pub fn sum_of_words(a: u32, b: u32) -> u32 {
    /// Every other byte of a word.
    const HALF: u32 = 0x00ff_00ff;
    // Two sums of four bytes in 16 bits each, and their sum.
    let pairs = (a & HALF) + (a >> 8 & HALF) + (b & HALF) + (b >> 8 & HALF);
    (pairs + (pairs >> 16)) & 0xffff
}

/// Reads the eight bytes from offset `at` on as a number; bytes behind the end read as 0.
#[inline]
pub fn word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(whole) => u64::from_be_bytes(*whole),
        None => {
            rest.iter().zip((0..8).rev()).fold(0, |n, (&byte, at)| n | u64::from(byte) << (at * 8))
        }
    }
}

/// A mask of the `count` lowest bits.
#[inline]
fn low_mask(count: usize) -> u128 {
    u128::MAX.checked_shr(128u32.saturating_sub(count as u32)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_have_the_bit_offsets_of_headers() {
        let mut bytes = [0x45, 0xb9, 0x00, 0x54, 0x12, 0x34, 0x40, 0x00];
        assert_eq!(get(&bytes, 4, 4), Some(5));
        assert_eq!(get(&bytes, 8, 6), Some(0x2e));
        assert_eq!((get(&bytes, 14, 2), get(&bytes, 49, 1)), (Some(1), Some(1)));
        assert_eq!(get(&bytes, 51, 13), Some(0));
        assert!(set(&mut bytes, 51, 13, 0x1fff) && set(&mut bytes, 14, 2, 0));
        assert_eq!(bytes, [0x45, 0xb8, 0x00, 0x54, 0x12, 0x34, 0x5f, 0xff]);
        assert_eq!(get(&bytes, 60, 5), None);
        assert!(!set(&mut bytes, 64, 1, 1));
    }

    #[test]
    fn words_are_padded_with_zeros() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(word(&bytes, 1), 0x0203_0405_0607_0809);
        assert_eq!(word(&bytes, 7), 0x0809 << 48);
        assert_eq!((word(&bytes, 9), word(&bytes, 99)), (0, 0));
    }

    proptest! {
        #[test]
        fn bytes_add_up(bytes in proptest::collection::vec(prop_oneof![Just(0xff), any::<u8>()], 0..99)) {
            prop_assert_eq!(sum_of_bytes(&bytes), bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>());
            for words in bytes.as_chunks::<8>().0 {
                let [a, b] = [0, 4].map(|at| words[at..].first_chunk().map_or(0, |it| u32::from_ne_bytes(*it)));
                prop_assert_eq!(sum_of_words(a, b), sum_of_bytes(words));
            }
        }

        #[test]
        fn set_changes_its_bits_and_no_others(
            bytes: [u8; 24], first in 0usize..60, count in 1usize..=120, number: u128,
        ) {
            let mut after = bytes;
            let fits = (first + count).div_ceil(8) - first / 8 <= 16;
            prop_assume!(fits);
            prop_assert!(set(&mut after, first, count, number));
            prop_assert_eq!(get(&after, first, count), Some(number & low_mask(count)));
            let old = get(&bytes, first, count).unwrap_or(0);
            prop_assert!(set(&mut after, first, count, old));
            prop_assert_eq!(after, bytes);
        }
    }
}
