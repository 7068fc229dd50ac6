//! The service that reports to the service manager when packets can flow, and that workers make turns.

use castanet_element::time::Time;
use castanet_runtime::router::{LivenessProbe, Router, Service};
use sd_notify::NotifyState;
use std::time::Duration;

/// Probes in a watchdog interval. One that a worker answers late still leaves time for the next.
const PROBES: u32 = 4;
/// The shortest time between probes, each of which wakes all workers.
const SHORTEST: Duration = Duration::from_millis(10);

/// Service that sends `READY=1` at its first step, when devices are open and workers run, and then
/// `WATCHDOG=1` each time that every worker has made a turn since the last one.
pub(crate) struct ServiceStatus {
    is_ready: bool,
    /// Time between probes, if the service manager waits for `WATCHDOG=1`.
    every: Option<Duration>,
    next: Time,
    /// The probe that workers have not answered yet.
    probe: Option<LivenessProbe>,
}

impl ServiceStatus {
    /// The service of a process with these environment variables (`$NOTIFY_SOCKET`,
    /// `$WATCHDOG_USEC`, `$WATCHDOG_PID`).
    pub(crate) fn from_environment() -> ServiceStatus {
        let every = sd_notify::watchdog_enabled().map(|interval| (interval / PROBES).max(SHORTEST));
        ServiceStatus { is_ready: false, every, next: Time(0), probe: None }
    }
}

/// The sentence about a running router.
pub(crate) fn sentence(router: &Router) -> String {
    let (elements, workers) = (router.graph().elements.len(), router.assigned().workers);
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    format!("{elements} element{} run on {workers} worker{}", plural(elements), plural(workers))
}

impl Service for ServiceStatus {
    fn step(&mut self, router: &mut Router) -> Option<Time> {
        if !self.is_ready {
            self.is_ready = true;
            super::ready(&sentence(router));
        }
        let every = self.every?;
        let now = router.clock().now();
        if now < self.next {
            return Some(self.next);
        }
        let is_answered = self.probe.as_mut().map(LivenessProbe::is_answered);
        if is_answered == Some(true) {
            super::send(&[NotifyState::Watchdog]);
        }
        if is_answered != Some(false) {
            self.probe = Some(router.probe_liveness());
        }
        self.next = now + every;
        Some(self.next)
    }
}
