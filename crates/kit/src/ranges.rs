//! Which of several filters a number belongs to, by ranges.

/// Ranges of numbers, each with what the first filter says that has it.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// First number of a range and its answer, in order; a range ends where the
    /// next begins.
    starts: Vec<(u32, Option<u8>)>,
}

impl Ranges {
    /// Compiles filters: each has ranges, ends included, and an answer; the first
    /// that has a number decides.
    pub fn new(filters: &[(Vec<(u32, u32)>, u8)]) -> Ranges {
        let mut cuts: Vec<u32> = vec![0];
        for (first, last) in filters.iter().flat_map(|(ranges, _)| ranges) {
            cuts.push(*first);
            cuts.extend(last.checked_add(1));
        }
        cuts.sort_unstable();
        cuts.dedup();
        let answer = |number: u32| {
            let has = |ranges: &[(u32, u32)]| {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&number))
            };
            filters.iter().find(|(ranges, _)| has(ranges)).map(|(_, answer)| *answer)
        };
        let mut starts: Vec<(u32, Option<u8>)> =
            cuts.into_iter().map(|cut| (cut, answer(cut))).collect();
        starts.dedup_by_key(|(_, answer)| *answer);
        Ranges { starts }
    }

    /// What the filters say of a number; `None` if none has it.
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
        for (number, want) in
            [(0, 3), (5, 1), (9, 1), (10, 2), (20, 1), (21, 2), (31, 3), (u32::MAX, 3)]
        {
            assert_eq!(ranges.find(number), Some(want), "{number}");
        }
        assert_eq!(Ranges::new(&[]).find(7), None);
        assert_eq!(Ranges::default().find(7), None);
    }

    proptest! {
        #[test]
        fn ranges_agree_with_looking(
            filters in prop::collection::vec(
                (prop::collection::vec((0u32..40, 0u32..40), 0..4), 0u8..5), 0..5),
            number in 0u32..45,
        ) {
            let has = |ranges: &[(u32, u32)]| {
                ranges.iter().any(|&(first, last)| first <= number && number <= last)
            };
            let want = filters.iter().find(|(ranges, _)| has(ranges)).map(|(_, answer)| *answer);
            prop_assert_eq!(Ranges::new(&filters).find(number), want);
        }
    }
}
