//! A token bucket in integers that is filled at whole microseconds, with the rounding of Click's.

/// Nanoseconds of a tick.
const TICK: u64 = 1000;
/// Ticks of a second.
const TICKS_PER_SECOND: u128 = 1_000_000;

/// A bucket that fills with tokens at a rate up to its capacity.
///
/// A full bucket has 2⁶⁴−1 units. A token is that number divided by the capacity, and each whole
/// microsecond brings a whole number of units, both rounded down; so a token may come one
/// microsecond late. A rate of zero means no limit. Callers pass the time in nanoseconds; time that
/// goes backwards counts as standing still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TickBucket {
    rate: u64,
    capacity: u64,
    /// Units of a token.
    token: u64,
    /// Units that a tick brings.
    per_tick: u64,
    /// Units in the bucket.
    level: u64,
    /// The tick of the last filling.
    tick: u64,
}

impl TickBucket {
    /// A full bucket of `capacity` tokens, at least one, that gets `rate` tokens per second from
    /// `now` on.
    pub fn new(rate: u64, capacity: u64, now: u64) -> Self {
        let capacity = capacity.max(1);
        let token = u64::MAX / capacity;
        let per_tick = u128::from(rate) * u128::from(token) / TICKS_PER_SECOND;
        let per_tick = u64::try_from(per_tick).unwrap_or(u64::MAX).max(1);
        TickBucket { rate, capacity, token, per_tick, level: u64::MAX, tick: now / TICK }
    }

    /// Tokens per second; 0 for no limit.
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// The largest number of tokens.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Changes rate and capacity at `now`; present tokens stay, up to the capacity.
    pub fn set(&mut self, rate: u64, capacity: u64, now: u64) {
        self.fill(now);
        let (level, token) = (u128::from(self.level), u128::from(self.token));
        let unlimited = self.rate == 0;
        *self = TickBucket::new(rate, capacity, self.tick * TICK);
        if !unlimited {
            let level = level * u128::from(self.token) / token;
            self.level = u64::try_from(level).unwrap_or(u64::MAX);
        }
    }

    /// Adds the units of the ticks up to `now`.
    #[inline]
    pub fn fill(&mut self, now: u64) {
        let tick = now / TICK;
        let Some(elapsed) = tick.checked_sub(self.tick).filter(|&ticks| ticks > 0) else { return };
        self.tick = tick;
        self.level = self.level.saturating_add(elapsed.saturating_mul(self.per_tick));
    }

    /// Empties the bucket.
    pub fn clear(&mut self) {
        self.level = 0;
    }

    /// Whole tokens at the last filling.
    pub fn tokens(&self) -> u64 {
        match self.rate {
            0 => u64::MAX,
            _ => (self.level / self.token).min(self.capacity),
        }
    }

    /// Whether the bucket has at least `n` tokens.
    #[inline]
    pub fn contains(&self, n: u64) -> bool {
        self.tokens() >= n
    }

    /// Removes `n` tokens, or all if there are fewer.
    #[inline]
    pub fn remove(&mut self, n: u64) {
        self.level = self.level.saturating_sub(n.saturating_mul(self.token));
    }

    /// Removes `n` tokens if there are that many; whether it did.
    #[inline]
    pub fn remove_if(&mut self, n: u64) -> bool {
        let enough = self.contains(n);
        if enough {
            self.remove(n);
        }
        enough
    }

    /// The time at which there will be `n` tokens, in nanoseconds and not before the last filling;
    /// `None` if there never will be.
    pub fn time_of(&self, n: u64) -> Option<u64> {
        if n > self.capacity && self.rate > 0 {
            return None;
        }
        let missing = match self.contains(n) {
            true => 0,
            false => (n * self.token).saturating_sub(self.level),
        };
        let ticks = missing.div_ceil(self.per_tick);
        self.tick.checked_add(ticks)?.checked_mul(TICK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_that_divide_evenly_come_a_tick_late() {
        let mut bucket = TickBucket::new(4, 1, 0);
        let mut times = Vec::new();
        while bucket.tick < 10_000_000 {
            assert!(bucket.remove_if(1));
            times.push(bucket.tick);
            let next = bucket.time_of(1).unwrap();
            bucket.fill(next - 1);
            assert!(!bucket.contains(1));
            bucket.fill(next);
        }
        assert_eq!((times.len(), &times[..3]), (40, &[0, 250_001, 500_002][..]));
    }

    #[test]
    fn changes_keep_tokens_and_no_rate_is_no_limit() {
        let mut bucket = TickBucket::new(10, 100, 0);
        bucket.remove(60);
        bucket.set(20, 50, 0);
        assert_eq!((bucket.tokens(), bucket.capacity(), bucket.rate()), (40, 50, 20));
        bucket.set(20, 30, 0);
        assert_eq!(bucket.tokens(), 30);
        bucket.clear();
        assert_eq!((bucket.tokens(), bucket.time_of(31)), (0, None));
        bucket.set(0, 30, 0);
        assert!(bucket.remove_if(u64::MAX) && bucket.time_of(1_000) == Some(0));
        let mut large = TickBucket::new(u64::MAX, u64::MAX, 0);
        large.clear();
        large.fill(u64::MAX);
        assert!(large.contains(u64::MAX));
    }

    proptest! {
        #[test]
        fn buckets_agree_with_units(
            rate in 1u64..50_000_000_000, capacity in 1u64..200_000,
            steps in prop::collection::vec((0u64..3_000_000, 0u64..2000), 1..60),
        ) {
            let full = u128::from(u64::MAX);
            let token = full / u128::from(capacity);
            let per_tick = (u128::from(rate) * token / 1_000_000).clamp(1, full);
            let mut bucket = TickBucket::new(rate, capacity, 0);
            let (mut level, mut now) = (full, 0);
            for (wait, n) in steps {
                let time = bucket.time_of(n);
                let ticks = (now + wait) / 1000 - now / 1000;
                now += wait;
                bucket.fill(now);
                level = full.min(level + u128::from(ticks) * per_tick);
                let tokens = (level / token).min(u128::from(capacity));
                prop_assert_eq!(u128::from(bucket.tokens()), tokens);
                let contains = tokens >= u128::from(n);
                prop_assert_eq!(time.is_some_and(|time| time <= now), contains);
                prop_assert_eq!(bucket.remove_if(n), contains);
                if contains {
                    level -= u128::from(n) * token;
                }
            }
        }
    }
}
