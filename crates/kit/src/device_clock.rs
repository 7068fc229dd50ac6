//! The clock of a device, whose ticks are converted to nanoseconds since 1970.

/// A device's clock, compared with the system's time again and again: its frequency follows from
/// the first and the last comparison, so that it gets more exact the longer the clock is in use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceClock {
    first: ClockPair,
    last: ClockPair,
    /// Nanoseconds of one tick.
    tick: f64,
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPair {
    /// The device's counter, which may wrap around.
    pub ticks: u64,
    /// Nanoseconds since 1970, of the system.
    pub nanoseconds: i64,
}

impl ClockPair {
    /// Ticks from this reading to a value of the counter, negative if the value is older.
    fn ticks_to(self, ticks: u64) -> i64 {
        ticks.wrapping_sub(self.ticks) as i64
    }
}

impl DeviceClock {
    /// A clock by two readings, the first one first; `None` if either clock has not moved on.
    pub fn new(first: ClockPair, last: ClockPair) -> Option<DeviceClock> {
        let ticks = first.ticks_to(last.ticks);
        let nanoseconds = last.nanoseconds.saturating_sub(first.nanoseconds);
        let moved = ticks > 0 && nanoseconds > 0;
        moved.then(|| DeviceClock { first, last, tick: nanoseconds as f64 / ticks as f64 })
    }

    /// Adds a comparison. If either clock went back, for example since the port was started anew,
    /// only the offset changes, and the frequency is measured anew from here.
    pub fn compare(&mut self, now: ClockPair) {
        let ahead = now.nanoseconds > self.last.nanoseconds && self.last.ticks_to(now.ticks) > 0;
        match DeviceClock::new(self.first, now).filter(|_| ahead) {
            Some(clock) => *self = clock,
            None => (self.first, self.last) = (now, now),
        }
    }

    /// Time of the last comparison, in nanoseconds since 1970.
    pub fn last_comparison(&self) -> i64 {
        self.last.nanoseconds
    }

    /// The time at which the counter had this value, in nanoseconds since 1970.
    pub fn time(&self, ticks: u64) -> i64 {
        let since = self.last.ticks_to(ticks) as f64 * self.tick;
        self.last.nanoseconds.saturating_add(since.round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000_000;

    proptest! {
        /// Any steady clock is converted to the time of the system, however its counter wraps.
        #[test]
        fn ticks_become_times(
            hertz in 1_000_000_i64..4_000_000_000,
            start in any::<u64>(),
            epoch in 0..4_000_000_000_i64,
            packet in -SECOND..SECOND,
        ) {
            let epoch = epoch * SECOND;
            let ticks = |after: i64| {
                start.wrapping_add((i128::from(after) * i128::from(hertz) / i128::from(SECOND)) as u64)
            };
            let at = |after| ClockPair { ticks: ticks(after), nanoseconds: epoch + after };
            let mut clock = DeviceClock::new(at(0), at(SECOND / 100)).expect("both moved");
            for n in 1..=20 {
                clock.compare(at(n * SECOND));
            }
            prop_assert_eq!(clock.last_comparison(), epoch + 20 * SECOND);
            let time = clock.time(ticks(20 * SECOND + packet));
            let error = (time - (epoch + 20 * SECOND + packet)).abs();
            // A tick of up to a microsecond, at either end.
            prop_assert!(error <= 2 * SECOND / hertz + 2, "{} ns", error);
        }
    }

    #[test]
    fn a_clock_that_starts_anew_is_followed() {
        let at = |ticks, nanoseconds| ClockPair { ticks, nanoseconds };
        assert_eq!(DeviceClock::new(at(5, 10), at(5, 20)), None);
        assert_eq!(DeviceClock::new(at(5, 10), at(6, 10)), None);
        let mut clock = DeviceClock::new(at(0, 1000), at(100, 2000)).expect("both moved");
        assert_eq!((clock.time(150), clock.time(50)), (2500, 1500));
        clock.compare(at(7, 9000));
        assert_eq!((clock.time(7), clock.time(17)), (9000, 9100));
        clock.compare(at(107, 11_000));
        assert_eq!(clock.time(108), 11_020);
    }
}
