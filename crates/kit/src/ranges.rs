//! Classification of numbers by ranges: the first filter that contains a number decides.

/// Disjoint ranges of numbers, each with the value of the first filter that contains it.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// The first number of each range and its value, in order; a range ends where the next one
    /// starts.
    starts: Vec<(u32, Option<u8>)>,
}

impl Ranges {
    /// Compiles filters: each has ranges, ends included, and a value; the first filter that
    /// contains a number decides.
    pub fn new(filters: &[(Vec<(u32, u32)>, u8)]) -> Ranges {
        let mut cuts: Vec<u32> = vec![0];
        for (first, last) in filters.iter().flat_map(|(ranges, _)| ranges) {
            cuts.push(*first);
            cuts.extend(last.checked_add(1));
        }
        cuts.sort_unstable();
        cuts.dedup();
        let value = |number: u32| {
            let has = |ranges: &[(u32, u32)]| {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&number))
            };
            filters.iter().find(|(ranges, _)| has(ranges)).map(|(_, value)| *value)
        };
        let mut starts: Vec<(u32, Option<u8>)> =
            cuts.into_iter().map(|cut| (cut, value(cut))).collect();
        starts.dedup_by_key(|(_, value)| *value);
        Ranges { starts }
    }

    /// The value for a number; `None` if no filter contains it.
    #[inline]
    pub fn find(&self, number: u32) -> Option<u8> {
        let after = self.starts.partition_point(|(first, _)| *first <= number);
        self.starts.get(after.checked_sub(1)?)?.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_filter_decides() {
        let all = (0, u32::MAX);
        let ranges =
            Ranges::new(&[(vec![(5, 9), (20, 20)], 1), (vec![(7, 30)], 2), (vec![all], 3)]);
        for (number, expected) in
            [(0, 3), (5, 1), (9, 1), (10, 2), (20, 1), (21, 2), (31, 3), (u32::MAX, 3)]
        {
            assert_eq!(ranges.find(number), Some(expected), "{number}");
        }
        assert_eq!(Ranges::new(&[]).find(7), None);
        assert_eq!(Ranges::default().find(7), None);
    }

    proptest! {
        #[test]
        fn ranges_agree_with_a_linear_search(
            filters in prop::collection::vec(
                (prop::collection::vec((0u32..40, 0u32..40), 0..4), 0u8..5), 0..5),
            number in 0u32..45,
        ) {
            let has = |ranges: &[(u32, u32)]| {
                ranges.iter().any(|&(first, last)| first <= number && number <= last)
            };
            let expected = filters.iter().find(|(ranges, _)| has(ranges)).map(|(_, value)| *value);
            prop_assert_eq!(Ranges::new(&filters).find(number), expected);
        }
    }
}
