//! Time as every element sees it: real or simulated.

use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Nanoseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Time(pub i64);

impl Time {
    /// Nanoseconds from `earlier` to `self`, zero if it is later.
    pub fn since(self, earlier: Time) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
    /// Nanoseconds since the epoch, as rates and buckets count.
    pub fn nanos(self) -> u64 {
        self.since(Time::default())
    }
    /// The time that is `nanos` after the epoch.
    pub fn from_nanos(nanos: u64) -> Time {
        Time(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
    /// Seconds, as a fraction.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(i64::try_from(d.as_nanos()).unwrap_or(i64::MAX)))
    }
}

impl Sub for Time {
    type Output = Duration;
    fn sub(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.since(earlier))
    }
}

/// When simulated time begins: 1 000 000 000 s after the epoch, as in Click.
pub const SIMULATED_START: Time = Time(1_000_000_000 * 1_000_000_000);

/// Where the time comes from.
pub enum Clock {
    /// The machine's: steady, started from the wall clock, so that it never
    /// jumps while a router runs.
    Real {
        /// The wall clock when the router was built.
        wall: Time,
        /// The steady clock.
        steady: quanta::Clock,
        /// Its reading at the same moment, in its own unit.
        start: u64,
    },
    /// One that only the driver moves, and looking at it if that has a price.
    Simulated {
        /// The time.
        at: AtomicI64,
        /// How many nanoseconds a look costs.
        tick: i64,
    },
}

impl Clock {
    /// The machine's clock.
    pub fn real() -> Clock {
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let steady = quanta::Clock::new();
        let start = steady.raw();
        Clock::Real { wall: Time::default() + wall.unwrap_or_default(), steady, start }
    }
    /// A clock that stands still until moved.
    pub fn simulated() -> Clock {
        Clock::simulated_from(SIMULATED_START, 0)
    }
    /// A clock that begins at `start` and moves by `tick` nanoseconds whenever
    /// it is looked at.
    pub fn simulated_from(start: Time, tick: i64) -> Clock {
        Clock::Simulated { at: AtomicI64::new(start.0), tick }
    }
    /// The time.
    pub fn now(&self) -> Time {
        match self {
            Clock::Real { wall, steady, start } => {
                let nanos = steady.delta_as_nanos(*start, steady.raw());
                Time(wall.0.saturating_add_unsigned(nanos))
            }
            Clock::Simulated { at, tick: 0 } => Time(at.load(Ordering::Acquire)),
            Clock::Simulated { at, tick } => {
                let before = at.fetch_add(*tick, Ordering::AcqRel);
                Time(before.saturating_add(*tick))
            }
        }
    }
    /// Moves a simulated clock forward to `to`; the real one moves itself.
    pub fn jump(&self, to: Time) {
        if let Clock::Simulated { at, .. } = self {
            at.fetch_max(to.0, Ordering::AcqRel);
        }
    }
    /// Whether the driver moves it.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Clock::Simulated { .. })
    }
}
