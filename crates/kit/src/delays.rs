//! Delay measurements and their mean, deviation and percentiles.

use crate::cow_vec::CowVec;
use std::fmt::Write as _;

/// How many delays one part of a text covers: about 200 µs.
const LINES_PER_PART: usize = 2048;

/// Delays in the order of measurement. A clone is cheap.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    all: CowVec<u64>,
    /// The largest number of delays, or 0 for [`Delays::MAX`]. Beyond it the oldest are
    /// overwritten.
    limit: usize,
    /// The index to overwrite next, once the limit is reached.
    next: usize,
}

impl Delays {
    /// The default limit: 128 MB.
    pub const MAX: usize = 1 << 24;

    /// Sets the largest number of delays; 0 for [`Delays::MAX`].
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Adds a delay.
    #[inline]
    pub fn push(&mut self, delay: u64) {
        let limit = if self.limit == 0 { Delays::MAX } else { self.limit };
        let mut at = self.next;
        if self.all.len() < limit {
            at = self.all.len();
            self.all.push(delay);
        } else if let Some(oldest) = self.all.get_mut(at) {
            *oldest = delay;
            self.next = (at + 1) % limit;
        }
        self.all.share_chunk_ending_at(at);
    }

    /// How many delays there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are no delays.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Removes all delays.
    pub fn clear(&mut self) {
        (self.all, self.next) = Default::default();
    }

    /// The delays in the order of measurement, without the first `skip`.
    pub fn in_order(&self, skip: usize) -> impl Iterator<Item = u64> + '_ {
        let new = self.next.min(self.len());
        self.all.iter_from(new).chain(self.all.iter_from(0).take(new)).copied().skip(skip)
    }

    /// The last delay.
    pub fn last(&self) -> Option<u64> {
        let last = if self.next > 0 { self.next } else { self.len() };
        self.all.get(last.checked_sub(1)?).copied()
    }

    /// One part of the delays, each as number and delay on a line, and the start of the next part.
    /// `from` is 0 for the first part.
    pub fn lines(&self, from: u64) -> (String, Option<u64>) {
        // The index of the oldest delay when the first part was written, and the number of lines so
        // far.
        let (first, written) = match from {
            0 => (self.next, 0),
            from => ((from >> 32) as usize, (from & u64::from(u32::MAX)) as usize),
        };
        let (mut text, end) = (String::new(), (written + LINES_PER_PART).min(self.len()));
        for number in written..end {
            let Some(delay) = self.all.get((first + number) % self.len()) else { continue };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{number}: {delay}");
        }
        (text, (end < self.len()).then_some((first as u64) << 32 | end as u64))
    }

    /// The mean of all but the first `skip`; `None` if there are none.
    pub fn mean(&self, skip: usize) -> Option<f64> {
        let count = self.len().saturating_sub(skip);
        let sum: u128 = self.in_order(skip).map(u128::from).sum();
        (count > 0).then(|| sum as f64 / count as f64)
    }

    /// The standard deviation of the whole population.
    pub fn deviation(&self, skip: usize) -> Option<f64> {
        let mean = self.mean(skip)?;
        let squares: f64 = self.in_order(skip).map(|delay| (delay as f64 - mean).powi(2)).sum();
        Some((squares / (self.len() - skip) as f64).sqrt())
    }

    /// The delay below which `percent` of them are; the smallest for 0, the largest for 100.
    pub fn percentile(&self, percent: f64, skip: usize) -> Option<u64> {
        let mut sorted: Vec<u64> = self.in_order(skip).collect();
        let last = sorted.len().checked_sub(1)?;
        let at = (percent * sorted.len() as f64 / 100.0) as usize;
        Some(*sorted.select_nth_unstable(at.min(last)).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn delays_of(all: &[u64]) -> Delays {
        let mut delays = Delays::default();
        all.iter().for_each(|&delay| delays.push(delay));
        delays
    }

    #[test]
    fn figures_are_right() {
        let delays = delays_of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((delays.mean(0), delays.deviation(0)), (Some(5.0), Some(2.0)));
        let at = |percent| delays.percentile(percent, 0).unwrap();
        assert_eq!([at(0.0), at(25.0), at(50.0), at(99.0), at(100.0)], [2, 4, 5, 9, 9]);
        assert_eq!((delays.mean(7), delays.percentile(50.0, 7)), (Some(9.0), Some(9)));
        assert_eq!((delays.mean(8), delays.deviation(9)), (None, None));
        assert_eq!(delays_of(&[]).percentile(50.0, 0), None);
    }

    #[test]
    fn long_listings_come_in_parts() {
        let mut delays = Delays::default();
        delays.set_limit(3 * LINES_PER_PART);
        (0..4 * LINES_PER_PART as u64).for_each(|delay| delays.push(delay));
        let (mut text, mut from, mut parts) = (String::new(), Some(0), 0);
        while let Some(place) = from {
            let part = delays.lines(place);
            assert!(part.0.lines().count() <= LINES_PER_PART);
            text += &part.0;
            from = part.1;
            parts += 1;
            // More delays are added meanwhile.
            delays.push(1 << 20);
        }
        assert_eq!((parts, text.lines().count()), (3, 3 * LINES_PER_PART));
        let lines: Vec<_> = text.lines().map(|it| it.split_once(": ").unwrap()).collect();
        assert_eq!(lines[0], ("0", &*LINES_PER_PART.to_string()));
        assert!(lines.iter().enumerate().all(|(n, (number, _))| n.to_string() == *number));
    }

    #[test]
    fn a_clone_of_a_million_copies_one_or_two_chunks() {
        let mut delays = Delays::default();
        delays.set_limit(1_000_000);
        (0..1_500_000).for_each(|delay| delays.push(delay));
        assert!(delays.all.unshared_chunks() <= 2);
        let copy = delays.clone();
        (0..10_000).for_each(|_| delays.push(0));
        assert_eq!(copy.percentile(0.0, 0), Some(500_000));
        assert_eq!((copy.last(), delays.last()), (Some(1_499_999), Some(0)));
        assert!(copy.in_order(0).eq(500_000..1_500_000));
    }

    #[test]
    fn the_oldest_are_overwritten() {
        let mut delays = Delays::default();
        delays.set_limit(3);
        (1..=5).for_each(|delay| delays.push(delay));
        assert_eq!(delays.in_order(0).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!((delays.len(), delays.mean(1), delays.last()), (3, Some(4.5), Some(5)));
        delays.clear();
        assert!(delays.is_empty());
    }

    proptest! {
        #[test]
        fn percentiles_agree_with_sorting(
            all in prop::collection::vec(0u64..1000, 1..60), percent in 0u32..=100,
        ) {
            let mut sorted = all.clone();
            sorted.sort_unstable();
            let at = (percent as usize * all.len() / 100).min(all.len() - 1);
            prop_assert_eq!(delays_of(&all).percentile(percent.into(), 0), Some(sorted[at]));
        }
    }
}
