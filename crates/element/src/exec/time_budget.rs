//! Time budgets: the share of a worker's time that looking at packets may take.

use crate::time::Time;
use std::time::Duration;

/// A share of a worker's time, as a token bucket: time that was not used is saved up to a limit.
#[derive(Clone, Copy, Debug)]
pub struct TimeBudget {
    /// One of so many nanoseconds may be spent.
    share: i64,
    /// Nanoseconds that may be saved.
    most: i64,
    /// The saved time, times the share; negative when more was spent.
    credit: i64,
    /// The time up to which credit was given.
    last: Time,
}

impl TimeBudget {
    /// One nanosecond of `share`, of which `most` may be saved; they are at the beginning.
    pub fn new(share: u32, most: u32, now: Time) -> TimeBudget {
        let (share, most) = (i64::from(share.max(1)), i64::from(most));
        TimeBudget { share, most, credit: share * most, last: now }
    }

    /// Whether there is time to spend.
    #[inline]
    pub fn is_open(&mut self, now: Time) -> bool {
        let passed = now.0.saturating_sub(self.last.0).max(0);
        self.last = now;
        self.credit = self.credit.saturating_add(passed).min(self.share * self.most);
        self.credit > 0
    }

    /// Spends so much time.
    #[inline]
    pub fn spend(&mut self, time: Duration) {
        let nanoseconds = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let spent = nanoseconds.saturating_mul(self.share);
        // No debt beyond a second: a thread that was preempted in between has not spent the time.
        self.credit = self.credit.saturating_sub(spent).max(-1_000_000_000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_spent_in_the_long_run_and_saved_up_to_the_limit() {
        let mut budget = TimeBudget::new(10, 1000, Time(0));
        let mut spent = 0;
        for now in (0..100_000).step_by(50) {
            if budget.is_open(Time(now)) {
                budget.spend(Duration::from_nanos(100));
                spent += 100;
            }
        }
        assert!((11_000..=11_200).contains(&spent), "{spent}: a tenth, and what was saved");
        assert!(budget.is_open(Time(i64::MAX)));
        let saved = (0..).take_while(|_| {
            budget.spend(Duration::from_nanos(100));
            budget.is_open(Time(i64::MAX))
        });
        assert_eq!(saved.count(), 9);
        budget.spend(Duration::MAX);
        assert!(!budget.is_open(Time(i64::MAX)));
    }
}
