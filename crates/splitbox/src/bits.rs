//! Strings of bits and of `0`, `1` and `*`, of the length of a header string.

use std::fmt::{Debug, Display, Formatter};
use std::ops::{BitAnd, BitOr, BitXor, Not};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use zeroize::Zeroize;

/// Bytes of a header string.
pub const HEADER_BYTES: usize = 64;
/// Bits of a header string: the maximum of `n` in the paper.
pub const HEADER_BITS: usize = 8 * HEADER_BYTES;

/// A string of `HEADER_BITS` bits. Bit 0 is the first one on the wire, the highest bit of the first
/// byte. Strings of fewer bits end in zeros.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Zeroize,
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
)]
#[repr(C, align(64))]
pub struct Bits(pub [u8; HEADER_BYTES]);

impl Bits {
    /// No bit set.
    pub const ZERO: Bits = Bits([0; HEADER_BYTES]);

    /// The first `count` bits set, at most [`HEADER_BITS`].
    pub fn first(count: usize) -> Bits {
        let mut bits = Bits::ZERO;
        (0..count.min(HEADER_BITS)).for_each(|at| bits.set(at));
        bits
    }

    /// Whether bit `at` is set; `false` behind the end.
    pub fn get(&self, at: usize) -> bool {
        self.0.get(at / 8).is_some_and(|byte| byte & 0x80 >> (at % 8) != 0)
    }

    /// Sets bit `at`; without effect behind the end.
    pub fn set(&mut self, at: usize) {
        if let Some(byte) = self.0.get_mut(at / 8) {
            *byte |= 0x80 >> (at % 8);
        }
    }

    /// Sets the `count` bits from `at` on to the lowest bits of `value`, the highest of them first.
    pub fn put(&mut self, at: usize, count: usize, value: u128) {
        for n in (0..count).filter(|n| value >> (count - 1 - n) & 1 != 0) {
            self.set(at + n);
        }
    }

    /// Hamming weight: the number of bits set.
    pub fn weight(&self) -> u32 {
        self.0.iter().map(|byte| byte.count_ones()).sum()
    }

    /// Whether no bit is set.
    pub fn is_zero(&self) -> bool {
        *self == Bits::ZERO
    }

    /// Whether a bit is set in both.
    pub fn overlaps(&self, other: &Bits) -> bool {
        !(*self & *other).is_zero()
    }

    /// Combines two strings byte by byte.
    #[inline]
    fn zip(self, other: Bits, f: impl Fn(u8, u8) -> u8) -> Bits {
        Bits(std::array::from_fn(|at| f(self.0[at], other.0[at])))
    }
}

impl BitXor for Bits {
    type Output = Bits;
    #[inline]
    fn bitxor(self, other: Bits) -> Bits {
        self.zip(other, |a, b| a ^ b)
    }
}

impl BitAnd for Bits {
    type Output = Bits;
    #[inline]
    fn bitand(self, other: Bits) -> Bits {
        self.zip(other, |a, b| a & b)
    }
}

impl BitOr for Bits {
    type Output = Bits;
    #[inline]
    fn bitor(self, other: Bits) -> Bits {
        self.zip(other, |a, b| a | b)
    }
}

impl Not for Bits {
    type Output = Bits;
    #[inline]
    fn not(self) -> Bits {
        Bits(self.0.map(|byte| !byte))
    }
}

impl Debug for Bits {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A string over `0`, `1` and `*`, which is either of both: the match μ or the action α of a policy
/// (paper, section 3.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Ternary {
    value: Bits,
    projection: Bits,
}

impl Ternary {
    /// `*` everywhere: the match of all packets, and the identity action.
    pub const ANY: Ternary = Ternary { value: Bits::ZERO, projection: Bits::ZERO };

    /// `value` where `projection` is set, `*` elsewhere.
    pub fn new(value: Bits, projection: Bits) -> Ternary {
        Ternary { value: value & projection, projection }
    }

    /// The bits; 0 where the string is `*`.
    pub fn value(&self) -> Bits {
        self.value
    }

    /// The projection π: the bits that are not `*`.
    pub fn projection(&self) -> Bits {
        self.projection
    }

    /// The same string with the `count` bits from `at` on replaced by the lowest bits of `value`.
    #[must_use]
    pub fn with(mut self, at: usize, count: usize, value: u128) -> Ternary {
        (at..at + count).for_each(|bit| self.projection.set(bit));
        self.value.put(at, count, value);
        Ternary::new(self.value, self.projection)
    }

    /// Whether no header string matches both.
    pub fn excludes(&self, other: &Ternary) -> bool {
        (self.value ^ other.value).overlaps(&(self.projection & other.projection))
    }

    /// Whether each header string that matches `other` matches this string too.
    pub fn contains(&self, other: &Ternary) -> bool {
        self.projection & other.projection == self.projection && self.matches(other.value)
    }

    /// The match of header strings that match both; `None` if there are none.
    pub fn and(&self, other: &Ternary) -> Option<Ternary> {
        let both = Ternary::new(self.value | other.value, self.projection | other.projection);
        (!self.excludes(other)).then_some(both)
    }

    /// The bits that both have in common; `*` elsewhere.
    #[must_use]
    pub fn common(&self, other: &Ternary) -> Ternary {
        let is_equal = !(self.value ^ other.value);
        Ternary::new(self.value, self.projection & other.projection & is_equal)
    }

    /// Whether a header string equals this string where that is not `*`: m(x).
    #[inline]
    pub fn matches(&self, header: Bits) -> bool {
        header & self.projection == self.value
    }

    /// A header string with this string in its place where that is not `*`: a(x).
    #[inline]
    pub fn apply(&self, header: Bits) -> Bits {
        header & !self.projection | self.value
    }
}

impl Display for Ternary {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        let last = (0..HEADER_BITS).rev().find(|&at| self.projection.get(at));
        for at in 0..last.map_or(0, |at| at + 1) {
            f.write_str(match (self.projection.get(at), self.value.get(at)) {
                (false, _) => "*",
                (true, false) => "0",
                (true, true) => "1",
            })?;
        }
        f.write_str("*")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_match_and_apply_where_they_are_not_any() {
        let string = Ternary::ANY.with(4, 8, 0b1010_0101);
        assert_eq!(string.to_string(), "****10100101*");
        let mut header = Bits::ZERO;
        assert!(!string.matches(header) && Ternary::ANY.matches(header));
        header.put(4, 8, 0b1010_0101);
        assert!(string.matches(header));
        header.put(0, 4, 0b1111);
        assert!(string.matches(header));
        let changed = Ternary::ANY.with(0, 6, 0b010_001).apply(header);
        assert_eq!(changed.0[..2], [0b0100_0110, 0b0101_0000]);
    }

    #[test]
    fn strings_are_compared_as_sets_of_header_strings() {
        let strings: Vec<Ternary> = (0..27)
            .map(|n| {
                [n % 3, n / 3 % 3, n / 9].into_iter().enumerate().fold(
                    Ternary::ANY,
                    |all, (at, it)| {
                        if it < 2 { all.with(at, 1, it) } else { all }
                    },
                )
            })
            .collect();
        let set = |string: &Ternary| -> Vec<bool> {
            let header = |n: u8| Ternary::ANY.with(0, 3, n.into()).value();
            (0..8).map(|n| string.matches(header(n))).collect()
        };
        for a in &strings {
            for b in &strings {
                let (in_a, in_b) = (set(a), set(b));
                let both: Vec<bool> = in_a.iter().zip(&in_b).map(|(a, b)| a & b).collect();
                assert_eq!(a.excludes(b), !both.contains(&true));
                assert_eq!(a.contains(b), both == in_b);
                assert_eq!(a.and(b).map(|it| set(&it)), both.contains(&true).then_some(both));
                let common = a.common(b);
                assert!(common.contains(a) && common.contains(b));
                let fixed = a.projection() & b.projection() & !(a.value() ^ b.value());
                assert_eq!(common.projection(), fixed);
            }
        }
    }

    #[test]
    fn weights_and_prefixes() {
        assert_eq!(Bits::first(13).weight(), 13);
        assert_eq!(Bits::first(13).0[..3], [0xff, 0xf8, 0]);
        assert!(Bits::first(600) == !Bits::ZERO);
        assert!(Bits::first(8).overlaps(&Bits::first(3)));
        assert!(!Bits::first(8).overlaps(&!Bits::first(8)));
    }
}
