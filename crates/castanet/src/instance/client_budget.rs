//! The part of a worker's and of the control thread's time that clients of an instance may take.

use castanet_element::time::Time;
use castanet_kit::rate::TokenBucket;
use castanet_runtime::router::{REQUESTS_PER_SECOND, Router};
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Requests that clients may make at once, before they are held to a rate.
const BURST: u64 = 500;
/// Requests of clients that are answered in a second where the control thread has no core beside those
/// of workers: with the thread that serves the sockets, each takes about 40 µs of a worker's core.
const SHARED_REQUESTS_PER_SECOND: u64 = 100;
/// Nanoseconds of processor time that answers may take in a second where the control thread has no core
/// beside those of workers.
const SHARED_TIME_PER_SECOND: u64 = 5_000_000;
/// Nanoseconds of processor time that answers may take at once there.
const TIME_BURST: u64 = 100_000_000;
/// Time for which requests wait when there were too many.
const PAUSE: Duration = Duration::from_millis(2);
/// The same where the control thread has no core beside those of workers. Requests are answered together
/// then: what a request costs is mostly that threads take turns on the core.
const SHARED_PAUSE: Duration = Duration::from_millis(100);
/// Interval at which the cores of the control thread are looked at.
const CORES_INTERVAL: Duration = Duration::from_secs(1);

/// Limits the requests of all clients together, and the time that their answers take.
pub(super) struct ClientBudget {
    requests: TokenBucket,
    /// In nanoseconds of the control thread's processor time; without a limit where it has a core.
    time: TokenBucket,
    /// Nanoseconds that answers took beyond what `time` had.
    owed: u64,
    /// When the cores of the control thread were looked at.
    looked: Option<Time>,
}

impl ClientBudget {
    pub(super) fn new(now: Time) -> ClientBudget {
        let now = now.nanos();
        ClientBudget {
            requests: TokenBucket::new(REQUESTS_PER_SECOND, BURST, now),
            time: TokenBucket::new(0, TIME_BURST, now),
            owed: 0,
            looked: None,
        }
    }

    /// Adds what was earned until now.
    pub(super) fn fill(&mut self, router: &Router) {
        let now = router.clock().now();
        if self.looked.is_none_or(|looked| now - looked >= CORES_INTERVAL) {
            self.looked = Some(now);
            self.limit(router.shares_cores(), now.nanos());
        }
        self.fill_at(now.nanos());
    }

    /// Sets the limits, by whether the control thread takes its time from workers.
    fn limit(&mut self, is_shared: bool, now: u64) {
        let (requests, time) = match is_shared {
            true => (SHARED_REQUESTS_PER_SECOND, SHARED_TIME_PER_SECOND),
            false => (REQUESTS_PER_SECOND, 0),
        };
        if self.requests.rate() != requests {
            self.requests.set(requests, BURST, now);
            self.time.set(time, TIME_BURST, now);
            self.owed = 0;
        }
    }

    fn fill_at(&mut self, now: u64) {
        self.requests.fill(now);
        self.time.fill(now);
        let paid = self.owed.min(self.time.tokens());
        self.time.remove(paid);
        self.owed -= paid;
    }

    /// Whether a request may be answered now.
    pub(super) fn allows(&self) -> bool {
        self.owed == 0 && self.requests.contains(1)
    }

    /// Time until requests are looked at again if they were not allowed.
    pub(super) fn pause(&self) -> Duration {
        if self.time.unlimited() { PAUSE } else { SHARED_PAUSE }
    }

    /// Counts an answered request.
    pub(super) fn charge(&mut self) {
        self.requests.remove(1);
    }

    /// Charges the processor time that this thread has used since `before`, from [`thread_time`].
    pub(super) fn charge_time(&mut self, before: Duration) {
        if self.time.unlimited() {
            return;
        }
        let spent = thread_time().saturating_sub(before).as_nanos() as u64;
        let paid = spent.min(self.time.tokens());
        self.time.remove(paid);
        self.owed += spent - paid;
    }
}

/// Processor time of this thread.
pub(super) fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Requests that are answered in ten seconds, if there are always some.
    fn answered(budget: &mut ClientBudget) -> u64 {
        let mut answered = 0;
        for now in (SECOND..11 * SECOND).step_by(1_000_000) {
            budget.fill_at(now);
            while budget.allows() {
                budget.charge();
                answered += 1;
            }
        }
        answered
    }

    #[test]
    fn clients_on_a_worker_s_core_have_fewer_answers() {
        let mut budget = ClientBudget::new(Time(0));
        budget.limit(false, SECOND);
        assert_eq!(answered(&mut budget), BURST + 10 * REQUESTS_PER_SECOND - 5);
        let mut budget = ClientBudget::new(Time(0));
        budget.limit(true, SECOND);
        let most = BURST + 10 * SHARED_REQUESTS_PER_SECOND;
        assert!((most - 1..=most).contains(&answered(&mut budget)));
    }

    #[test]
    fn long_answers_are_paid_for_before_the_next_one() {
        let mut budget = ClientBudget::new(Time(0));
        budget.limit(true, SECOND);
        budget.fill_at(SECOND);
        assert!(budget.allows());
        // As if an answer had taken half a second.
        budget.owed = 5 * TIME_BURST;
        budget.fill_at(SECOND + 1);
        assert!(!budget.allows());
        budget.fill_at(30 * SECOND);
        budget.fill_at(41 * SECOND);
        assert!(!budget.allows());
        for second in 42..100 {
            budget.fill_at(second * SECOND);
        }
        assert!(budget.allows());
        // Where the control thread has a core of its own, nothing is owed.
        budget.owed = SECOND;
        budget.limit(false, 100 * SECOND);
        assert!(budget.allows());
        budget.charge_time(Duration::ZERO);
        assert_eq!(budget.owed, 0);
    }
}
