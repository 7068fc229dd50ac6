//! Time as every element sees it: real or simulated.

use std::fmt;
use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
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

/// The state, also if a thread has panicked that held it: it is replaced as a whole.
fn lock(warp: &Mutex<WarpState>) -> MutexGuard<'_, WarpState> {
    warp.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// The machine's, which a factor may make faster or slower, and which may jump over waits.
    Warpable {
        /// The clock behind it.
        real: Box<Clock>,
        /// Whether its speed was ever changed.
        is_warped: AtomicBool,
        /// Its speed, and a time that both clocks had at one moment.
        warp: Mutex<WarpState>,
    },
    /// One that only the driver moves, and looking at it if that has a price.
    Simulated {
        /// The time.
        at: AtomicI64,
        /// How many nanoseconds a look costs.
        tick: i64,
    },
}

/// The speed of a clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Warp {
    /// So many times as fast as the machine's.
    Factor(f64),
    /// As fast as the machine's, but nobody waits for a time: the clock jumps to it.
    NoWait,
    /// It only moves when the driver moves it.
    Simulation,
}

impl Warp {
    fn factor(self) -> f64 {
        match self {
            Warp::Factor(factor) => factor,
            Warp::NoWait | Warp::Simulation => 1.0,
        }
    }
}

impl fmt::Display for Warp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warp::Factor(factor) => write!(f, "{factor}"),
            Warp::NoWait => f.write_str("nowait"),
            Warp::Simulation => f.write_str("simulation"),
        }
    }
}

/// The speed of a clock since a moment.
pub struct WarpState {
    warp: Warp,
    /// The machine's time at that moment.
    real: Time,
    /// The clock's time at that moment.
    shown: Time,
}

impl WarpState {
    fn at(&self, real: Time) -> Time {
        let passed = real.0.saturating_sub(self.real.0) as f64 * self.warp.factor();
        Time(self.shown.0.saturating_add(passed as i64))
    }
}

impl Clock {
    /// The machine's clock, whose speed can be changed.
    pub fn warpable() -> Clock {
        let start =
            WarpState { warp: Warp::Factor(1.0), real: Time::default(), shown: Time::default() };
        let (is_warped, warp) = (AtomicBool::new(false), Mutex::new(start));
        Clock::Warpable { real: Box::new(Clock::real()), is_warped, warp }
    }
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
    /// The time, for an element or a program that looks at it: simulated time moves on then.
    pub fn now(&self) -> Time {
        let now = self.peek();
        self.tick();
        now
    }
    /// The time, for the engine: no look moves it.
    pub fn peek(&self) -> Time {
        match self {
            Clock::Real { wall, steady, start } => {
                let nanos = steady.delta_as_nanos(*start, steady.raw());
                Time(wall.0.saturating_add_unsigned(nanos))
            }
            Clock::Warpable { real, is_warped, warp } => {
                let now = real.peek();
                match is_warped.load(Ordering::Acquire) {
                    false => now,
                    true => lock(warp).at(now),
                }
            }
            Clock::Simulated { at, .. } => Time(at.load(Ordering::Acquire)),
        }
    }
    /// Moves simulated time on by the price of a look.
    pub fn tick(&self) {
        if let Clock::Simulated { at, tick } = self
            && *tick != 0
        {
            at.fetch_add(*tick, Ordering::AcqRel);
        }
    }
    /// Moves a simulated clock forward to `to`, and one that jumps over waits; others move themselves.
    pub fn jump(&self, to: Time) {
        match self {
            Clock::Simulated { at, .. } => _ = at.fetch_max(to.0, Ordering::AcqRel),
            Clock::Warpable { real, warp, .. } if self.jumps() => {
                let mut state = lock(warp);
                let now = real.peek();
                let shown = state.at(now).max(to);
                *state = WarpState { warp: state.warp, real: now, shown };
            }
            Clock::Real { .. } | Clock::Warpable { .. } => {}
        }
    }
    /// The speed.
    pub fn warp(&self) -> Warp {
        match self {
            Clock::Real { .. } => Warp::Factor(1.0),
            Clock::Warpable { warp, .. } => lock(warp).warp,
            Clock::Simulated { .. } => Warp::Simulation,
        }
    }
    /// Whether its speed can be changed.
    pub fn can_warp(&self) -> bool {
        matches!(self, Clock::Warpable { .. })
    }
    /// Changes the speed from now on, if this clock can.
    pub fn set_warp(&self, wanted: Warp) {
        let Clock::Warpable { real, is_warped, warp } = self else { return };
        let mut state = lock(warp);
        let now = real.peek();
        let shown = if is_warped.load(Ordering::Acquire) { state.at(now) } else { now };
        *state = WarpState { warp: wanted, real: now, shown };
        is_warped.store(true, Ordering::Release);
    }
    /// Whether the clock jumps over waits.
    pub fn jumps(&self) -> bool {
        match self {
            Clock::Warpable { is_warped, warp, .. } => {
                is_warped.load(Ordering::Acquire) && lock(warp).warp == Warp::NoWait
            }
            Clock::Real { .. } | Clock::Simulated { .. } => false,
        }
    }
    /// How long the machine takes for a time of this clock.
    pub fn real_delay(&self, time: Duration) -> Duration {
        match self {
            Clock::Warpable { is_warped, warp, .. } if is_warped.load(Ordering::Acquire) => {
                let seconds = time.as_secs_f64() / lock(warp).warp.factor();
                Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
            }
            _ => time,
        }
    }
    /// Whether the driver moves it.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Clock::Simulated { .. })
    }
}
