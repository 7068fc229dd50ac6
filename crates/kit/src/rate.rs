//! Rate control in integers, exact over any time: an even pace and a token bucket.
//!
//! There is no clock: callers pass the time in nanoseconds. Time that goes backwards counts as
//! standing still.

const SECOND: u64 = 1_000_000_000;

/// An even pace of events, as Click's `GapRate`: exactly the rate in each second, spread evenly.
///
/// A caller that falls behind may catch up, by the events of one second at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapRate {
    rate: u64,
    /// The second that `count` belongs to; `None` until the first query.
    second: Option<u64>,
    /// Events so far in this second, minus those that were due earlier.
    count: i64,
}

impl GapRate {
    /// The highest rate, in events per second.
    pub const MAX_RATE: u64 = SECOND * 8;

    /// A pace of `rate` events per second, limited to [`GapRate::MAX_RATE`].
    pub fn new(rate: u64) -> Self {
        GapRate { rate: rate.min(Self::MAX_RATE), second: None, count: 0 }
    }

    /// Events per second.
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// Changes the rate from `now` on, without a burst.
    pub fn set_rate(&mut self, rate: u64, now: u64) {
        let rate = rate.min(Self::MAX_RATE);
        if rate == self.rate {
            return;
        }
        self.rate = rate;
        if self.second.is_some() {
            self.second = Some(now / SECOND);
            self.count = self.due(now);
        }
    }

    /// Resets the pace to its initial state.
    pub fn reset(&mut self) {
        self.second = None;
    }

    /// Whether an event is due at `now`. If so, the caller executes it and calls
    /// [`GapRate::update`].
    #[inline]
    pub fn need_update(&mut self, now: u64) -> bool {
        self.allowance(now) > 0
    }

    /// How many events are due at `now`.
    #[inline]
    pub fn allowance(&mut self, now: u64) -> u64 {
        if self.rate == 0 {
            return 0;
        }
        let second = now / SECOND;
        let due = self.due(now);
        match self.second {
            None => {
                // The first event may happen at once, unless the next one is nearer.
                let rest = now % SECOND * self.rate % SECOND;
                self.count = due + i64::from(rest > SECOND / 2);
                self.second = Some(second);
            }
            Some(last) if second > last => {
                if self.count > 0 {
                    self.count -= self.rate as i64;
                }
                self.second = Some(second);
            }
            // After a clock was set back, the pace would otherwise stop until the clock has caught
            // up.
            Some(last) if second < last => {
                self.second = Some(second);
                self.count = due;
            }
            _ => {}
        }
        (due + 1 - self.count).max(0) as u64
    }

    /// Counts an event.
    #[inline]
    pub fn update(&mut self) {
        self.count += 1;
    }

    /// Counts `events` events.
    #[inline]
    pub fn update_with(&mut self, events: i64) {
        self.count += events;
    }

    /// The time at which the next event is due, if the pace has started; in the past if one is due
    /// already.
    pub fn expiry(&self) -> Option<u64> {
        let second = self.second.filter(|_| self.rate != 0)?;
        let count = self.count.max(0) as u64;
        let (seconds, count) = (second + count / self.rate, count % self.rate);
        // Rounded up, so that the event is due at that time.
        Some(seconds * SECOND + (count * SECOND).div_ceil(self.rate))
    }

    /// Events due since the start of the second.
    #[inline]
    fn due(&self, now: u64) -> i64 {
        (now % SECOND * self.rate / SECOND) as i64
    }
}

/// A bucket that fills with tokens at a rate up to its capacity.
///
/// As in Click, a rate of zero means no limit, and a capacity of zero with any other rate lets
/// nothing pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    rate: u64,
    capacity: u64,
    tokens: u64,
    /// The fraction of the next token, in billionths.
    fraction: u64,
    /// The time of the last filling.
    time: u64,
    /// Nanoseconds to fill an empty bucket.
    fill_time: u64,
}

impl TokenBucket {
    /// A full bucket of `capacity` tokens that gets `rate` tokens per second from `now` on.
    pub fn new(rate: u64, capacity: u64, now: u64) -> Self {
        let fill_time = match rate {
            0 => 0,
            _ => u128::from(capacity) * u128::from(SECOND) / u128::from(rate) + 1,
        };
        let fill_time = fill_time.try_into().unwrap_or(u64::MAX);
        TokenBucket { rate, capacity, tokens: capacity, fraction: 0, time: now, fill_time }
    }

    /// Tokens per second; 0 for no limit.
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// The largest number of tokens.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Whether the bucket has no limit.
    pub fn unlimited(&self) -> bool {
        self.rate == 0
    }

    /// Changes rate and capacity at `now`; present tokens stay, up to the capacity.
    pub fn set(&mut self, rate: u64, capacity: u64, now: u64) {
        self.fill(now);
        let (tokens, fraction) = (self.tokens, self.fraction);
        let unlimited = self.unlimited();
        *self = TokenBucket::new(rate, capacity, self.time);
        if !unlimited && tokens < capacity {
            (self.tokens, self.fraction) = (tokens, fraction);
        }
    }

    /// Adds the tokens up to `now`.
    #[inline]
    pub fn fill(&mut self, now: u64) {
        let elapsed = now.saturating_sub(self.time);
        if elapsed == 0 {
            return;
        }
        self.time = now;
        if elapsed >= self.fill_time {
            (self.tokens, self.fraction) = (self.capacity, 0);
            return;
        }
        let earned = match elapsed.checked_mul(self.rate).and_then(|n| n.checked_add(self.fraction))
        {
            Some(earned) => (earned / SECOND, earned % SECOND),
            None => {
                let earned =
                    u128::from(elapsed) * u128::from(self.rate) + u128::from(self.fraction);
                let second = u128::from(SECOND);
                ((earned / second) as u64, (earned % second) as u64)
            }
        };
        (self.tokens, self.fraction) = match self.tokens.saturating_add(earned.0) {
            tokens if tokens >= self.capacity => (self.capacity, 0),
            tokens => (tokens, earned.1),
        };
    }

    /// Fills the bucket.
    pub fn set_full(&mut self) {
        (self.tokens, self.fraction) = (self.capacity, 0);
    }

    /// Empties the bucket.
    pub fn clear(&mut self) {
        (self.tokens, self.fraction) = (0, 0);
    }

    /// Whole tokens at the last filling.
    pub fn tokens(&self) -> u64 {
        if self.unlimited() { u64::MAX } else { self.tokens }
    }

    /// Whether the bucket has at least `n` tokens.
    #[inline]
    pub fn contains(&self, n: u64) -> bool {
        self.tokens >= n || self.unlimited()
    }

    /// Removes `n` tokens, or all if there are fewer.
    #[inline]
    pub fn remove(&mut self, n: u64) {
        if n > self.tokens {
            self.fraction = 0;
        }
        self.tokens = self.tokens.saturating_sub(n);
    }

    /// Removes `n` tokens if there are that many; whether it did.
    #[inline]
    pub fn remove_if(&mut self, n: u64) -> bool {
        let enough = self.contains(n);
        if enough {
            self.tokens = self.tokens.saturating_sub(n);
        }
        enough
    }

    /// Nanoseconds from the last filling until there are `n` tokens; `None` if there never will be.
    pub fn time_until(&self, n: u64) -> Option<u64> {
        if self.contains(n) {
            return Some(0);
        }
        if n > self.capacity {
            return None;
        }
        let missing = u128::from(n - self.tokens) * u128::from(SECOND) - u128::from(self.fraction);
        missing.div_ceil(u128::from(self.rate)).try_into().ok()
    }
}

/// The capacity of a bucket: `size` if that is given, else the tokens of `duration` nanoseconds
/// (default 20 ms), and at least one. `None` if both are given.
pub fn burst_capacity(rate: u64, duration: Option<u64>, size: Option<u64>) -> Option<u64> {
    let in_time = |nanos| u128::from(rate) * u128::from(nanos) / u128::from(SECOND);
    let tokens = match (duration, size) {
        (Some(_), Some(_)) => return None,
        (_, Some(size)) => size,
        (duration, None) => in_time(duration.unwrap_or(SECOND / 50)).try_into().unwrap_or(u64::MAX),
    };
    Some(tokens.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The number of events in `seconds` with queries every `step` nanoseconds.
    fn events(rate: u64, seconds: u64, step: u64) -> u64 {
        let mut gap = GapRate::new(rate);
        let (mut now, mut events) = (5 * SECOND, 0);
        while now < (5 + seconds) * SECOND {
            while gap.need_update(now) {
                gap.update();
                events += 1;
            }
            now += step;
        }
        events
    }

    #[test]
    fn the_pace_is_exact() {
        for rate in [1, 3, 7, 999, 1000, 1001] {
            assert_eq!(events(rate, 20, 1_000_003), rate * 20, "{rate}");
        }
        assert_eq!(events(0, 3, 1_000_000), 0);
    }

    #[test]
    fn the_pace_is_even() {
        let mut gap = GapRate::new(4);
        let times: Vec<u64> = (0..2000)
            .map(|ms| 5 * SECOND + ms * 1_000_000)
            .filter(|&now| {
                let due = gap.need_update(now);
                gap.update_with(i64::from(due));
                due
            })
            .map(|now| now / 1_000_000 - 5000)
            .collect();
        assert_eq!(times, [0, 250, 500, 750, 1000, 1250, 1500, 1750]);
    }

    #[test]
    fn lag_beyond_a_second_is_forgiven() {
        let mut gap = GapRate::new(100);
        assert_eq!(gap.allowance(SECOND), 1);
        gap.update();
        let late = gap.allowance(10 * SECOND);
        assert!((100..=101).contains(&late), "{late}");
    }

    proptest! {
        #[test]
        fn expiry_is_when_the_next_is_due(
            rate in 1u64..3_000_000, start in 0u64..4 * SECOND, done in 1i64..4,
        ) {
            let mut gap = GapRate::new(rate);
            prop_assert_eq!(gap.expiry(), None);
            gap.need_update(start);
            gap.update_with(done);
            let expiry = gap.expiry().unwrap();
            prop_assume!(expiry > start);
            prop_assert!(!gap.clone().need_update(expiry - 1));
            prop_assert!(gap.need_update(expiry));
        }

        #[test]
        fn buckets_agree_with_fractions(
            rate in 1u64..50_000_000_000, capacity in 0u64..100_000,
            steps in prop::collection::vec((0u64..3_000_000, 0u64..2000), 1..60),
        ) {
            let mut bucket = TokenBucket::new(rate, capacity, 0);
            let second = u128::from(SECOND);
            let full = u128::from(capacity) * second;
            let (mut level, mut now) = (full, 0);
            for (wait, n) in steps {
                let before = bucket.clone();
                now += wait;
                bucket.fill(now);
                level = full.min(level + u128::from(wait) * u128::from(rate));
                prop_assert_eq!(u128::from(bucket.tokens()), level / second);
                if before.tokens() < n && n <= capacity {
                    let until = before.time_until(n).unwrap();
                    prop_assert_eq!(until <= wait, bucket.contains(n));
                }
                let taken = bucket.remove_if(n);
                prop_assert_eq!(taken, level / second >= u128::from(n));
                if taken {
                    level -= u128::from(n) * second;
                }
            }
        }
    }

    #[test]
    fn capacities_follow_rate_duration_and_size() {
        assert_eq!(burst_capacity(1000, None, None), Some(20));
        assert_eq!(burst_capacity(1, None, None), Some(1));
        assert_eq!(burst_capacity(1000, Some(SECOND / 2), None), Some(500));
        assert_eq!(burst_capacity(1000, None, Some(3)), Some(3));
        assert_eq!(burst_capacity(1000, Some(1), Some(3)), None);
        assert_eq!(burst_capacity(u64::MAX, Some(u64::MAX), None), Some(u64::MAX));
    }

    #[test]
    fn special_buckets_and_extremes() {
        let mut none = TokenBucket::new(5, 0, 0);
        none.fill(u64::MAX);
        assert!(!none.contains(1) && none.contains(0) && none.time_until(1).is_none());
        let mut all = TokenBucket::new(0, 0, 0);
        assert!(all.remove_if(u64::MAX) && all.unlimited() && all.time_until(9) == Some(0));
        let mut big = TokenBucket::new(u64::MAX, u64::MAX, 0);
        big.clear();
        big.fill(SECOND / 2);
        assert!(big.tokens().abs_diff(u64::MAX / 2) < 2);
        big.fill(0);
        big.set(1, 10, SECOND);
        assert_eq!(big.tokens(), 10);
    }
}
