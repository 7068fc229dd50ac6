//! Many delays, and what they say: mean, deviation, percentiles.

use crate::cow_vec::CowVec;
use std::fmt::Write as _;

/// How many delays are said in one piece of a text: some 200 µs.
const PIECE: usize = 2048;

/// Delays in the order they were measured. A copy takes no time to speak of.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    all: CowVec<u64>,
    /// The most that are kept; [`Delays::MOST`] if 0. Beyond it the oldest give way.
    limit: usize,
    /// Where the next goes, once the limit is reached.
    next: usize,
}

impl Delays {
    /// How many delays are kept where nothing else is said: 128 MB.
    pub const MOST: usize = 1 << 24;

    /// Keeps so many delays at most; [`Delays::MOST`] if 0.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Takes a delay.
    #[inline]
    pub fn push(&mut self, delay: u64) {
        let limit = if self.limit == 0 { Delays::MOST } else { self.limit };
        let mut at = self.next;
        if self.all.len() < limit {
            at = self.all.len();
            self.all.push(delay);
        } else if let Some(oldest) = self.all.get_mut(at) {
            *oldest = delay;
            self.next = (at + 1) % limit;
        }
        self.all.share_behind(at);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        (self.all, self.next) = Default::default();
    }

    /// In the order they were measured, but the first `skip`.
    pub fn in_order(&self, skip: usize) -> impl Iterator<Item = u64> + '_ {
        let new = self.next.min(self.len());
        self.all.iter_from(new).chain(self.all.iter_from(0).take(new)).copied().skip(skip)
    }

    /// The one that was measured last.
    pub fn last(&self) -> Option<u64> {
        let last = if self.next > 0 { self.next } else { self.len() };
        self.all.get(last.checked_sub(1)?).copied()
    }

    /// Number and delay, a line each, of as many as take a moment, from where a piece before said, 0
    /// for the first, and where others begin.
    pub fn lines(&self, from: u64) -> (String, Option<u64>) {
        // Where the first delay was when the first piece was asked for, and how many have been said.
        let (first, said) = match from {
            0 => (self.next, 0),
            from => ((from >> 32) as usize, (from & u64::from(u32::MAX)) as usize),
        };
        let (mut text, end) = (String::new(), (said + PIECE).min(self.len()));
        for number in said..end {
            let Some(delay) = self.all.get((first + number) % self.len()) else { continue };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{number}: {delay}");
        }
        (text, (end < self.len()).then_some((first as u64) << 32 | end as u64))
    }

    /// Their mean, without the first `skip`; none of none.
    pub fn mean(&self, skip: usize) -> Option<f64> {
        let count = self.len().saturating_sub(skip);
        let sum: u128 = self.in_order(skip).map(u128::from).sum();
        (count > 0).then(|| sum as f64 / count as f64)
    }

    /// Their standard deviation, that of a whole population.
    pub fn deviation(&self, skip: usize) -> Option<f64> {
        let mean = self.mean(skip)?;
        let squares: f64 = self.in_order(skip).map(|delay| (delay as f64 - mean).powi(2)).sum();
        Some((squares / (self.len() - skip) as f64).sqrt())
    }

    /// The delay below which `percent` of them lie; the smallest for 0, the
    /// largest for 100.
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

    fn of(all: &[u64]) -> Delays {
        let mut delays = Delays::default();
        all.iter().for_each(|&delay| delays.push(delay));
        delays
    }

    #[test]
    fn figures_are_right() {
        let delays = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((delays.mean(0), delays.deviation(0)), (Some(5.0), Some(2.0)));
        let at = |percent| delays.percentile(percent, 0).unwrap();
        assert_eq!([at(0.0), at(25.0), at(50.0), at(99.0), at(100.0)], [2, 4, 5, 9, 9]);
        assert_eq!((delays.mean(7), delays.percentile(50.0, 7)), (Some(9.0), Some(9)));
        assert_eq!((delays.mean(8), delays.deviation(9)), (None, None));
        assert_eq!(of(&[]).percentile(50.0, 0), None);
    }

    #[test]
    fn many_are_said_in_pieces() {
        let mut delays = Delays::default();
        delays.set_limit(3 * PIECE);
        (0..4 * PIECE as u64).for_each(|delay| delays.push(delay));
        let (mut text, mut from, mut pieces) = (String::new(), Some(0), 0);
        while let Some(place) = from {
            let piece = delays.lines(place);
            assert!(piece.0.lines().count() <= PIECE);
            text += &piece.0;
            from = piece.1;
            pieces += 1;
            // Others come meanwhile.
            delays.push(1 << 20);
        }
        assert_eq!((pieces, text.lines().count()), (3, 3 * PIECE));
        let lines: Vec<_> = text.lines().map(|it| it.split_once(": ").unwrap()).collect();
        assert_eq!(lines[0], ("0", &*PIECE.to_string()));
        assert!(lines.iter().enumerate().all(|(n, (number, _))| n.to_string() == *number));
    }

    #[test]
    fn a_copy_of_a_million_copies_a_chunk_or_two() {
        let mut delays = Delays::default();
        delays.set_limit(1_000_000);
        (0..1_500_000).for_each(|delay| delays.push(delay));
        assert!(delays.all.own_chunks() <= 2);
        let copy = delays.clone();
        (0..10_000).for_each(|_| delays.push(0));
        assert_eq!(copy.percentile(0.0, 0), Some(500_000));
        assert_eq!((copy.last(), delays.last()), (Some(1_499_999), Some(0)));
        assert!(copy.in_order(0).eq(500_000..1_500_000));
    }

    #[test]
    fn the_oldest_give_way() {
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
            prop_assert_eq!(of(&all).percentile(percent.into(), 0), Some(sorted[at]));
        }
    }
}
