//! Internet checksums: full (RFC 1071) and incremental (RFC 1624).
//!
//! Sums are computed in host byte order and converted to network order once,
//! at the end: the ones' complement sum does not depend on byte order
//! (RFC 1071, section 2B).

use std::net::{Ipv4Addr, Ipv6Addr};

/// The Internet checksum of `bytes`; 0 if they include a correct checksum field.
#[inline]
pub fn of(bytes: &[u8]) -> u16 {
    Sum::new().slice(bytes).checksum()
}

/// The Internet checksum of an IPv4 header without options.
#[inline(always)]
pub fn of_header(bytes: &[u8; 20]) -> u16 {
    let (words, _) = bytes.as_chunks::<4>();
    let sum: u64 = words.iter().map(|w| u64::from(u32::from_ne_bytes(*w))).sum();
    !u16::from_be(fold(sum))
}

/// Whether the checksum of an IPv4 header without options is correct.
#[inline(always)]
pub fn header_ok(bytes: &[u8; 20]) -> bool {
    // The checksum is correct if the sum is a multiple of 0xffff other than 0
    // (RFC 1071, section 2: all ones), in either byte order. Modulo 0xffff, 2^64 is 1 as 2^16 is, so
    // that words of 64 bits may be added, with their carries.
    let add = |sum: u64, word: u64| {
        let (sum, carry) = sum.overflowing_add(word);
        sum + u64::from(carry)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let rest = rest.first_chunk().map_or(0, |word| u32::from_ne_bytes(*word).into());
    let sum = words.iter().fold(rest, |sum, word| add(sum, u64::from_ne_bytes(*word)));
    // Multiplying a multiple of 0xffff by the inverse of 0xffff modulo 2^64 gives
    // the quotient; any other number gives a result larger than any quotient.
    // Folding the carries takes twice the instructions.
    const INVERSE: u64 = 0u64.wrapping_sub(LARGEST);
    const LARGEST: u64 = u64::MAX / u16::MAX as u64;
    sum.wrapping_mul(INVERSE).wrapping_sub(1) < LARGEST
}

/// An unfinished ones' complement sum.
///
/// ```
/// use castanet_wire::checksum::{self, Sum};
/// let whole = checksum::of(b"some bytes, in two parts");
/// assert_eq!(Sum::new().slice(b"some ").slice(b"bytes, in two parts").checksum(), whole);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Sum of native-endian words; the carries collect in the high bits.
    total: u64,
    /// Whether an odd number of bytes has been added.
    odd: bool,
}

impl Sum {
    /// An empty sum.
    #[inline(always)]
    pub const fn new() -> Self {
        Sum { total: 0, odd: false }
    }

    /// Adds bytes that follow the ones already added.
    #[inline]
    pub fn slice(mut self, bytes: &[u8]) -> Self {
        let part = sum_words(bytes);
        // RFC 1071, 2B: the sum of bytes at an odd offset is added byte-swapped. In a sum of 64 bits
        // with end-around carry, each 16-bit word may stand for all: a rotation swaps its bytes.
        let part = if self.odd { part.rotate_left(8) } else { part };
        self.total += (part >> 32) + (part & u64::from(u32::MAX));
        self.odd ^= bytes.len() & 1 != 0;
        self
    }

    /// Adds a header at an even offset, whose length is a multiple of 4: in line, without a loop.
    #[inline(always)]
    pub fn header<const N: usize>(mut self, bytes: &[u8; N]) -> Self {
        const { assert!(N.is_multiple_of(4) && N <= 64) };
        let (words, _) = bytes.as_chunks::<4>();
        self.total += words.iter().map(|w| u64::from(u32::from_ne_bytes(*w))).sum::<u64>();
        self
    }

    /// Adds a 16-bit number (in host order) at an even offset.
    #[inline(always)]
    pub const fn u16(mut self, word: u16) -> Self {
        self.total += word.to_be() as u64;
        self
    }

    /// Adds a 32-bit number (in host order) at an even offset.
    #[inline(always)]
    pub const fn u32(mut self, word: u32) -> Self {
        self.total += word.to_be() as u64;
        self
    }

    /// Takes away a 16-bit number (in host order) that has been added at an even offset, unless it
    /// was all: the rest must not be zeros only.
    #[inline(always)]
    pub const fn without(self, word: u16) -> Self {
        self.u16(!word)
    }

    /// The checksum: the complement of the sum, in host order.
    #[inline(always)]
    pub const fn checksum(self) -> u16 {
        !u16::from_be(fold(self.total))
    }

    /// The sum without the complement, in host order: hardware that completes a
    /// checksum expects this value in the checksum field.
    #[inline(always)]
    pub const fn partial(self) -> u16 {
        u16::from_be(fold(self.total))
    }
}

/// The sum of the pseudo header of TCP and UDP over IPv4 (RFC 9293, 3.1);
/// `len` counts transport header and payload.
#[inline(always)]
pub fn pseudo_v4(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, len: usize) -> Sum {
    Sum::new().u32(src.to_bits()).u32(dst.to_bits()).u32(u32::from(protocol)).u32(len as u32)
}

/// The sum of the pseudo header over IPv6 (RFC 8200, 8.1).
#[inline]
pub fn pseudo_v6(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8, len: usize) -> Sum {
    Sum::new().slice(&src.octets()).slice(&dst.octets()).u32(u32::from(next_header)).u32(len as u32)
}

/// The accumulated effect on a checksum of changes in the bytes that it covers. A NAT
/// computes one per flow and applies it to every packet. It is a sum in which the carries collect in
/// the high bits, as in [`Sum`].
///
/// ```
/// use castanet_wire::checksum::{self, Delta};
/// let check = checksum::of(&[10, 0, 0, 1, 0, 80]);
/// let delta = Delta::new().u32(0x0a000001, 0x01020304).u16(80, 8080);
/// assert_eq!(delta.apply(check), checksum::of(&[1, 2, 3, 4, 0x1f, 0x90]));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Delta(u64);

impl Delta {
    /// No change.
    #[inline(always)]
    pub const fn new() -> Self {
        Delta(0)
    }

    /// A 16-bit word changes from `old` to `new`.
    #[inline(always)]
    pub const fn u16(self, old: u16, new: u16) -> Self {
        Delta(self.0 + !old as u64 + new as u64)
    }

    /// A 32-bit word changes from `old` to `new`.
    #[inline(always)]
    pub const fn u32(self, old: u32, new: u32) -> Self {
        Delta(self.0 + !old as u64 + new as u64)
    }

    /// An IPv4 address changes from `old` to `new`.
    #[inline(always)]
    pub const fn addr(self, old: Ipv4Addr, new: Ipv4Addr) -> Self {
        self.u32(old.to_bits(), new.to_bits())
    }

    /// An IPv6 address changes from `old` to `new`.
    #[inline]
    pub fn addr6(self, old: Ipv6Addr, new: Ipv6Addr) -> Self {
        self.sum(Sum::new().slice(&old.octets()), Sum::new().slice(&new.octets()))
    }

    /// Bytes with the sum `old` are replaced by bytes with the sum `new`, such as one
    /// pseudo header by another.
    #[inline(always)]
    pub const fn sum(self, old: Sum, new: Sum) -> Self {
        self.u16(old.partial(), new.partial())
    }

    /// The combination of both changes.
    #[inline(always)]
    pub const fn and(self, other: Delta) -> Self {
        Delta(self.0 + other.0)
    }

    /// The reverse change.
    #[inline(always)]
    pub const fn inverse(self) -> Self {
        Delta(!fold(self.0) as u64)
    }

    /// The checksum after the change (RFC 1624, eq. 3: `HC' = ~(~HC + ~m + m')`).
    #[inline(always)]
    pub const fn apply(self, check: u16) -> u16 {
        !fold(!check as u64 + self.0)
    }
}

/// Updates the checksum `check` for a 16-bit word that it covers, from `old` to `new`.
#[inline(always)]
pub const fn adjust(check: u16, old: u16, new: u16) -> u16 {
    Delta::new().u16(old, new).apply(check)
}

/// Updates the checksum `check` for a 32-bit word that it covers, from `old` to `new`.
#[inline(always)]
pub const fn adjust_u32(check: u16, old: u32, new: u32) -> u16 {
    Delta::new().u32(old, new).apply(check)
}

/// Folds a sum to 16 bits by adding the carries: a word plus itself with its
/// halves exchanged has, in the upper half, the sum of the halves and its carry.
#[inline(always)]
const fn fold(sum: u64) -> u16 {
    let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
}

/// Length in bytes from which on vectors are faster than words.
const LONG: usize = 128;

/// Sums `bytes` as native 16-bit words, the last padded with zeros: a sum of 64 bits with
/// end-around carry, which is 0 only if all bytes are.
#[inline]
fn sum_words(bytes: &[u8]) -> u64 {
    if bytes.len() >= LONG {
        return sum_long_words(bytes);
    }
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let sum = blocks.iter().fold(0, |sum, block| add_words(sum, block));
    sum_rest(sum, bytes, rest)
}

/// As [`sum_words`], for many bytes: apart, so that registers are saved for them alone.
#[inline(never)]
fn sum_long_words(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    sum_rest(sum_long(blocks), bytes, rest)
}

/// Adds the last bytes, `rest`, of `bytes` to a sum; they are fewer than a block.
#[inline(always)]
fn sum_rest(mut sum: u64, bytes: &[u8], rest: &[u8]) -> u64 {
    // A test for each part costs less than a loop over words. All parts begin at even offsets.
    let (parts, rest) = rest.as_chunks::<16>();
    sum = parts.first().map_or(sum, |part| add_words(sum, part));
    let (parts, rest) = rest.as_chunks::<8>();
    sum = parts.first().map_or(sum, |part| add_words(sum, part));
    carrying(sum, last_word(bytes, rest.len()))
}

/// The last `count` bytes, at most 7, padded with zeros to a native word of 64 bits.
#[inline(always)]
fn last_word(bytes: &[u8], count: usize) -> u64 {
    match bytes.last_chunk::<8>() {
        // In two steps, because `count` may be 0.
        Some(last) => (u64::from_le_bytes(*last) >> 1 >> (63 - 8 * (count & 7))).to_le(),
        None => short_word(bytes).to_le(),
    }
}

/// At most 7 bytes as a little-endian number: two loads that may overlap.
#[inline(always)]
fn short_word(bytes: &[u8]) -> u64 {
    let shift = |parts: usize| 8 * (bytes.len() - parts);
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let [first, last] = [first, last].map(|part| u64::from(u32::from_le_bytes(*part)));
        return first | last << shift(4);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<2>(), bytes.last_chunk::<2>()) {
        let [first, last] = [first, last].map(|part| u64::from(u16::from_le_bytes(*part)));
        return first | last << shift(2);
    }
    bytes.first().map_or(0, |&byte| byte.into())
}

/// Bytes that are summed at once.
const BLOCK: usize = 32;

/// Adds the words of some bytes, whose number is a multiple of 8, to a sum.
#[inline(always)]
fn add_words(sum: u64, bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(sum, |sum, word| carrying(sum, u64::from_ne_bytes(*word)))
}

/// The sum with end-around carry.
#[inline(always)]
const fn carrying(a: u64, b: u64) -> u64 {
    let (sum, carry) = a.overflowing_add(b);
    sum + carry as u64
}

/// Sums up to 128 GB, as in [`sum_words`]. The compiler makes vectors of this loop: it adds up words
/// modulo 2^64, and beside them their upper halves. From both follows the sum of the lower halves,
/// so a vector takes three operations, and carries take none.
#[inline(never)]
fn sum_long(blocks: &[[u8; BLOCK]]) -> u64 {
    let (words, _) = blocks.as_flattened().as_chunks::<8>();
    let (mut all, mut upper) = (0u64, 0u64);
    for word in words {
        let word = u64::from_ne_bytes(*word);
        all = all.wrapping_add(word);
        upper = upper.wrapping_add(word >> 32);
    }
    let lower = all.wrapping_sub(upper << 32);
    carrying(lower, upper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition of RFC 1071, word by word.
    fn reference(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&b| u32::from(b));
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !(sum as u16)
    }

    #[test]
    fn matches_the_example_of_rfc_1071() {
        // Section 3: the sum of these is ddf2.
        assert_eq!(of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn matches_the_examples_of_rfc_1624() {
        // Section 4: checksum dd2f, a word 5555 becomes 3285.
        assert_eq!(adjust(0xdd2f, 0x5555, 0x3285), 0x0000);
        assert_eq!(adjust_u32(0xdd2f, 0x1234_5555, 0x1234_3285), 0x0000);
    }

    #[test]
    fn ipv6_address_changes_update_the_checksum() {
        let addresses: [Ipv6Addr; 2] = ["2001:db8::1", "fe80::9"].map(|a| a.parse().expect(a));
        let check = |address| Sum::new().slice(&Ipv6Addr::octets(&address)).u16(7).checksum();
        let delta = Delta::new().addr6(addresses[0], addresses[1]);
        assert_eq!(delta.apply(check(addresses[0])), check(addresses[1]));
        assert_eq!(delta.inverse().apply(check(addresses[1])), check(addresses[0]));
    }

    #[test]
    fn matches_the_reference_at_every_length_and_alignment() {
        let bytes: Vec<u8> = (0..400u32).map(|i| (i * 151 + 7) as u8).collect();
        for from in 0..16 {
            for to in from..=bytes.len() {
                assert_eq!(of(&bytes[from..to]), reference(&bytes[from..to]), "{from}..{to}");
            }
        }
    }

    #[test]
    fn a_header_of_zeros_is_wrong_and_one_of_ones_is_right() {
        // RFC 1071: the sum of a right one is all ones, never zero.
        assert!(!header_ok(&[0; 20]));
        assert!(header_ok(&[0xff; 20]));
    }

    #[test]
    fn long_runs_of_ones_do_not_overflow() {
        for len in [1, 2, 3, 20, 1500, 65535, 1 << 20] {
            let ones = vec![0xff; len];
            assert_eq!(of(&ones), reference(&ones), "{len}");
        }
    }

    #[test]
    fn every_word_change_equals_a_fresh_checksum() {
        let mut bytes = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let (mut old, mut check) = (0, of(&bytes));
        for new in (0..=u16::MAX).map(|n| n.wrapping_mul(40503)) {
            check = adjust(check, old, new);
            old = new;
            bytes[4..6].copy_from_slice(&new.to_be_bytes());
            assert_eq!(check, of(&bytes), "{new:#x}");
            assert_eq!(check, of_header(&bytes), "{new:#x}");
        }
    }

    proptest! {
        #[test]
        fn matches_the_reference(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(of(&bytes), reference(&bytes));
        }

        #[test]
        fn matches_the_reference_where_carries_abound(
            bytes in proptest::collection::vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 0..600),
        ) {
            prop_assert_eq!(of(&bytes), reference(&bytes));
        }

        #[test]
        fn headers_are_right_exactly_where_the_reference_is_zero(
            bytes in prop_oneof![
                proptest::array::uniform20(any::<u8>()),
                proptest::array::uniform20(prop_oneof![Just(0u8), Just(0xff), any::<u8>()]),
                proptest::array::uniform20(prop_oneof![Just(0u8), Just(0xff)]),
            ],
        ) {
            prop_assert_eq!(header_ok(&bytes), reference(&bytes) == 0);
            let mut right = bytes;
            right[10..12].fill(0);
            let checksum = reference(&right);
            right[10..12].copy_from_slice(&checksum.to_be_bytes());
            prop_assert!(header_ok(&right));
        }

        #[test]
        fn a_word_can_be_taken_away(
            bytes in proptest::collection::vec(any::<u8>(), 2..100), at: usize, rest in 1..=u16::MAX,
        ) {
            let at = at % (bytes.len() / 2) * 2;
            let word = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            let mut without = bytes.clone();
            without[at..at + 2].fill(0);
            let sum = |bytes| Sum::new().u16(rest).slice(bytes);
            prop_assert_eq!(sum(&bytes).without(word).checksum(), sum(&without).checksum());
        }

        #[test]
        fn sums_of_parts_add_up(bytes in proptest::collection::vec(any::<u8>(), 0..499), cut: usize, again: usize) {
            let (a, rest) = bytes.split_at(cut % (bytes.len() + 1));
            let (b, c) = rest.split_at(again % (rest.len() + 1));
            prop_assert_eq!(Sum::new().slice(a).slice(b).slice(c).checksum(), reference(&bytes));
        }

        #[test]
        fn headers_of_constant_length_add_up(header: [u8; 20], rest in proptest::collection::vec(any::<u8>(), 0..40)) {
            let sum = Sum::new().header(&header).slice(&rest).checksum();
            prop_assert_eq!(sum, reference(&[&header[..], &rest].concat()));
        }

        #[test]
        fn header_checksums_match_the_reference(bytes: [u8; 20]) {
            prop_assert_eq!(of_header(&bytes), reference(&bytes));
        }

        #[test]
        fn pseudo_headers_match_their_bytes(src: [u8; 4], dst: [u8; 4], s6: [u8; 16], d6: [u8; 16], proto: u8, len: u16) {
            let len_bytes = u32::from(len).to_be_bytes();
            let v4 = [&src[..], &dst, &[0, proto], &len_bytes[2..]].concat();
            prop_assert_eq!(pseudo_v4(src.into(), dst.into(), proto, len.into()).checksum(), reference(&v4));
            let v6 = [&s6[..], &d6, &len_bytes, &[0, 0, 0, proto]].concat();
            prop_assert_eq!(pseudo_v6(s6.into(), d6.into(), proto, len.into()).checksum(), reference(&v6));
        }

        #[test]
        fn deltas_combine_and_invert(old: [u8; 6], new: [u8; 6], rest in 1..=u16::MAX) {
            let word = |b: &[u8; 6]| (u32::from_be_bytes([b[0], b[1], b[2], b[3]]), u16::from_be_bytes([b[4], b[5]]));
            let whole = |b: &[u8; 6]| reference(&[&b[..], &rest.to_be_bytes()].concat());
            let ((a, b), (c, d)) = (word(&old), word(&new));
            let delta = Delta::new().u32(a, c).and(Delta::new().u16(b, d));
            prop_assert_eq!(delta.apply(whole(&old)), whole(&new));
            prop_assert_eq!(delta.inverse().apply(whole(&new)), whole(&old));
        }
    }
}
