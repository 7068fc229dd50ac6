//! Ranges of numbers as prefixes.

/// The numbers of `width` bits from `low` to `high`, as the fewest prefixes (mask, value), in
/// order.
pub fn prefixes(low: u128, high: u128, width: u32) -> impl Iterator<Item = (u128, u128)> {
    let all = u128::MAX >> (u128::BITS - width);
    let mut next = (low <= high && high <= all).then_some(low);
    std::iter::from_fn(move || {
        let at = next?;
        // The longest run of numbers that starts here and is one prefix.
        let fixed = width - at.trailing_zeros().min(width);
        let mut run = all.checked_shr(fixed).unwrap_or(0);
        while run > high - at {
            run >>= 1;
        }
        next = (run < high - at).then(|| at + run + 1);
        Some((all & !run, at))
    })
}

#[cfg(test)]
mod tests {
    use super::prefixes;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_number_of_a_range_has_one_prefix(a: u8, b: u8, number: u8) {
            let (low, high, number) = (a.min(b).into(), u128::from(a.max(b)), u128::from(number));
            let has = prefixes(low, high, 8).filter(|(mask, value)| number & mask == *value);
            prop_assert_eq!(has.count(), usize::from((low..=high).contains(&number)));
            prop_assert!(prefixes(low, high, 8).count() <= 14);
        }
    }

    #[test]
    fn the_widest_range_and_an_empty_one() {
        assert!(prefixes(0, u128::MAX, 128).eq([(0, 0)]));
        assert!(prefixes(0, u64::MAX.into(), 64).eq([(0, 0)]));
        assert!(prefixes(7, 7, 3).eq([(7, 7)]));
        assert_eq!(prefixes(2, 1, 8).count() + prefixes(0, 256, 8).count(), 0);
        assert_eq!(prefixes(1, u128::from(u64::MAX) - 1, 64).count(), 126);
    }
}
