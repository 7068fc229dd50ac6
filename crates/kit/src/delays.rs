//! Many delays, and what they say: mean, deviation, percentiles.

/// Delays in the order they were measured.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    all: Vec<u64>,
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
        if self.all.len() < limit {
            self.all.push(delay);
        } else {
            self.all[self.next] = delay;
            self.next = (self.next + 1) % limit;
        }
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
        self.all.clear();
        self.next = 0;
    }

    /// In the order they were measured, but the first `skip`.
    pub fn in_order(&self, skip: usize) -> impl Iterator<Item = u64> + '_ {
        let (new, old) = self.all.split_at(self.next.min(self.all.len()));
        old.iter().chain(new).copied().skip(skip)
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
    fn the_oldest_give_way() {
        let mut delays = Delays::default();
        delays.set_limit(3);
        (1..=5).for_each(|delay| delays.push(delay));
        assert_eq!(delays.in_order(0).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!((delays.len(), delays.mean(1)), (3, Some(4.5)));
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
