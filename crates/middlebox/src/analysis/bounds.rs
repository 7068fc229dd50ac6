//! Sets of numbers that satisfy a comparison.

use crate::value::Condition;

/// A number of 384 bits, most significant word first: wide enough for a TCP option of 38 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Number([u128; 3]);

impl From<u128> for Number {
    fn from(n: u128) -> Number {
        Number([0, 0, n])
    }
}

impl Number {
    pub(super) const ZERO: Number = Number([0; 3]);
    pub(super) const MOST: Number = Number([u128::MAX; 3]);

    /// A number from bytes in network order. The last 48 bytes count.
    pub(super) fn of_bytes(bytes: &[u8]) -> Number {
        let push = |Number([a, b, c]): Number, byte: &u8| {
            const BYTE: u32 = u8::BITS;
            let carry = |low: u128| low >> (u128::BITS - BYTE);
            Number([a << BYTE | carry(b), b << BYTE | carry(c), c << BYTE | u128::from(*byte)])
        };
        bytes.iter().fold(Number::ZERO, push)
    }

    /// The largest number with this many bits.
    pub(super) fn last_of(bits: u16) -> Number {
        match bits {
            1..128 => Number::from((1 << bits) - 1),
            128 => Number::from(u128::MAX),
            _ => Number::MOST,
        }
    }

    fn next(self) -> Option<Number> {
        let Number([a, b, c]) = self;
        let (c, carry) = c.overflowing_add(1);
        let (b, carry) = b.overflowing_add(carry.into());
        Some(Number([a.checked_add(carry.into())?, b, c]))
    }

    fn previous(self) -> Option<Number> {
        let Number([a, b, c]) = self;
        let (c, borrow) = c.overflowing_sub(1);
        let (b, borrow) = b.overflowing_sub(borrow.into());
        Some(Number([a.checked_sub(borrow.into())?, b, c]))
    }
}

/// The numbers that satisfy a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bound {
    /// The numbers from the first to the second; none if the second is less.
    Within(Number, Number),
    /// All numbers but those from the first to the second.
    Without(Number, Number),
}

impl Bound {
    /// Every number.
    pub(super) const ALL: Bound = Bound::Within(Number::ZERO, Number::MOST);
    /// No number.
    pub(super) const NONE: Bound = Bound::Without(Number::ZERO, Number::MOST);

    /// One number.
    pub(super) fn only(number: impl Into<Number>) -> Bound {
        let number = number.into();
        Bound::Within(number, number)
    }

    /// The numbers that satisfy a comparison with the range from `low` to `high`, which stands for one
    /// value: a prefix stands for its addresses.
    pub(super) fn compared(condition: Condition, low: Number, high: Number) -> Bound {
        match condition {
            Condition::Equal => Bound::Within(low, high),
            Condition::Unequal => Bound::Without(low, high),
            Condition::AtMost => Bound::Within(Number::ZERO, high),
            Condition::AtLeast => Bound::Within(low, Number::MOST),
            Condition::Less => {
                low.previous().map_or(Bound::NONE, |it| Bound::Within(Number::ZERO, it))
            }
            Condition::More => {
                high.next().map_or(Bound::NONE, |it| Bound::Within(it, Number::MOST))
            }
        }
    }

    /// Whether a number is in the set.
    pub(super) fn allows(self, number: Number) -> bool {
        match self {
            Bound::Within(low, high) => (low..=high).contains(&number),
            Bound::Without(low, high) => !(low..=high).contains(&number),
        }
    }
}

/// The least number that is in all sets and not greater than `last`.
pub(super) fn least(bounds: impl Iterator<Item = Bound>, last: Number) -> Option<Number> {
    let (mut low, mut high) = (Number::ZERO, last);
    let mut holes = Vec::new();
    for bound in bounds {
        match bound {
            Bound::Within(from, to) => (low, high) = (low.max(from), high.min(to)),
            Bound::Without(from, to) => holes.push((from, to)),
        }
    }
    holes.sort_unstable();
    for (from, to) in holes {
        if (from..=to).contains(&low) {
            low = to.next()?;
        }
    }
    (low <= high).then_some(low)
}
