//! The counter by which processor time is charged.

use castanet_element::time::{Clock, Time};
use std::time::Duration;

/// Counts ticks: of the time-stamp counter, or nanoseconds of simulated time.
pub(super) struct TickCounter {
    pub(super) counter: Option<quanta::Clock>,
    per_second: f64,
}

impl TickCounter {
    pub(super) fn new(clock: &Clock) -> TickCounter {
        let counter = (!clock.is_simulated()).then(quanta::Clock::new);
        let seconds = |counter: &quanta::Clock| counter.delta_as_nanos(0, 1 << 40) as f64 / 1e9;
        let per_second = counter.as_ref().map_or(1e9, |it| (1u64 << 40) as f64 / seconds(it));
        TickCounter { counter, per_second }
    }

    #[inline]
    pub(super) fn now(&self, time: Time) -> u64 {
        match &self.counter {
            Some(counter) => counter.raw(),
            None => time.nanos(),
        }
    }

    pub(super) fn ticks(&self, time: Duration) -> u64 {
        (time.as_secs_f64() * self.per_second) as u64
    }

    pub(super) fn time(&self, ticks: u64) -> Duration {
        Duration::from_nanos((ticks as f64 / self.per_second * 1e9) as u64)
    }
}
