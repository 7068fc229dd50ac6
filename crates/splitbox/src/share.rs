//! Shares of actions: t-out-of-t by exclusive or (paper, figures 25 and 26).

use crate::bits::{Bits, HEADER_BYTES, Ternary};
use crate::secret::{RandomError, fill_random};

/// A share of an action α and of its projection. All shares of an action together give both; fewer
/// are independent of the action.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ActionShare {
    /// The share of α, whose bits are 0 where α is `*`.
    pub value: Bits,
    /// The share of the projection of α.
    pub projection: Bits,
}

impl std::fmt::Debug for ActionShare {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("ActionShare(..)")
    }
}

impl ActionShare {
    /// The share of nothing.
    pub const ZERO: ActionShare = ActionShare { value: Bits::ZERO, projection: Bits::ZERO };

    /// Adds a share, of another action of the same party or of the same action of another party.
    #[inline]
    #[must_use]
    pub fn plus(self, other: &ActionShare) -> ActionShare {
        ActionShare {
            value: self.value ^ other.value,
            projection: self.projection ^ other.projection,
        }
    }

    /// Applies the sum of all parties' shares to a header string.
    #[inline]
    pub fn apply(&self, header: Bits) -> Bits {
        Ternary::new(self.value, self.projection).apply(header)
    }
}

/// Splits an action into `count` shares, within the first bits of a header string that `within` has
/// set (paper, algorithm Split Action). `fill` fills bytes with random ones.
///
/// # Errors
/// `fill` failed.
pub fn split_with(
    action: &Ternary,
    count: usize,
    within: Bits,
    mut fill: impl FnMut(&mut [u8]) -> Result<(), RandomError>,
) -> Result<Vec<ActionShare>, RandomError> {
    let mut random = || {
        let mut bytes = [0; HEADER_BYTES];
        fill(&mut bytes).map(|()| Bits(bytes) & within)
    };
    let mut last = ActionShare { value: action.value(), projection: action.projection() };
    let mut shares = Vec::with_capacity(count);
    for _ in 1..count {
        let share = ActionShare { value: random()?, projection: random()? };
        last = last.plus(&share);
        shares.push(share);
    }
    shares.push(last);
    Ok(shares)
}

/// Splits an action with the system's random numbers.
///
/// # Errors
/// The system has no random numbers.
pub fn split(
    action: &Ternary,
    count: usize,
    within: Bits,
) -> Result<Vec<ActionShare>, RandomError> {
    split_with(action, count, within, fill_random)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// All actions over the first two bits, and all random bits that three shares of one need: the
    /// joint distribution of any two shares is the same for every action.
    #[test]
    fn fewer_shares_than_all_are_independent_of_the_action() {
        const WIDTH: usize = 2;
        let within = Bits::first(WIDTH);
        let actions = (0..9_u32).map(|code| {
            (0..WIDTH).fold(Ternary::ANY, |action, at| match code / 3_u32.pow(at as u32) % 3 {
                2 => action,
                bit => action.with(at, 1, bit.into()),
            })
        });
        type Views = HashMap<Vec<[u8; 2]>, u32>;
        let mut expected: Option<[Views; 3]> = None;
        for action in actions {
            let mut views: [Views; 3] = Default::default();
            // Two bits for each of four random strings.
            for random in 0..256_u32 {
                let mut left = random;
                let shares = split_with(&action, 3, within, |bytes| {
                    bytes[0] = (left as u8 & 3) << 6;
                    left >>= 2;
                    Ok(())
                });
                let shares = shares.expect("is filled");
                let sum = shares.iter().fold(ActionShare::ZERO, |sum, share| sum.plus(share));
                assert_eq!((sum.value, sum.projection), (action.value(), action.projection()));
                for (absent, views) in views.iter_mut().enumerate() {
                    let seen = shares.iter().enumerate().filter(|&(party, _)| party != absent);
                    let view = seen.map(|(_, it)| [it.value.0[0], it.projection.0[0]]).collect();
                    *views.entry(view).or_default() += 1;
                }
            }
            assert!(views.iter().all(|view| view.len() == 256 && view.values().all(|&n| n == 1)));
            let same = expected.get_or_insert_with(|| views.clone());
            assert_eq!(*same, views, "{action}");
        }
    }

    #[test]
    fn shares_stay_within_the_header_string() {
        let within = Bits::first(200);
        let action = Ternary::ANY.with(96, 32, 0x0a00_0001);
        for count in 1..6 {
            let shares = split(&action, count, within).expect("random numbers");
            assert_eq!(shares.len(), count);
            assert!(shares.iter().all(|it| !(it.value | it.projection).overlaps(&!within)));
            let sum = shares.iter().fold(ActionShare::ZERO, |sum, share| sum.plus(share));
            assert_eq!(sum.apply(Bits::first(128)), action.apply(Bits::first(128)));
        }
    }
}
