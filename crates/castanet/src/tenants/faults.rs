//! Panics in tenants' elements: a tenant in which they are many is suspended, and starts anew after a pause.

use castanet_element::time::Time;
use castanet_tenants::Backoff;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Panics within [`WINDOW`] for which a tenant is suspended. A few cost it a burst of packets each; its state
/// outlives them.
const MOST_PANICS: u64 = 10;
/// The time in which panics are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// The time until a tenant is looked at again that could not be suspended or resumed.
const RETRY: Duration = Duration::from_millis(100);

/// The panics of the last seconds.
#[derive(Debug, Default)]
pub(crate) struct RecentPanics {
    count: u64,
    /// The first of them.
    since: Time,
}

impl RecentPanics {
    /// Adds panics; returns whether they are too many.
    pub(crate) fn add(&mut self, panics: u64, now: Time) -> bool {
        if now - self.since > WINDOW {
            *self = RecentPanics { count: 0, since: now };
        }
        self.count += panics;
        self.count >= MOST_PANICS
    }
}

/// Counts of a tenant's faults since the start.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct FaultCounts {
    /// Panics in its elements, each of which lost a burst of packets.
    pub(crate) panics: u64,
    /// How often it started anew after a pause.
    pub(crate) restarts: u64,
}

/// A change that the faults of a tenant ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FaultChange {
    /// Its configuration is to be taken out.
    Suspend,
    /// Its configuration is to start anew.
    Resume,
}

/// The faults of the tenants of a system, by name.
#[derive(Default)]
pub(crate) struct TenantFaults {
    tenants: BTreeMap<String, TenantFault>,
}

/// The faults of one tenant.
#[derive(Default)]
struct TenantFault {
    counts: FaultCounts,
    /// The element that panicked last, by its own name.
    element: String,
    recent: RecentPanics,
    backoff: Backoff,
    /// When its configuration started anew; the beginning of time at first.
    started: Time,
    /// The time of the change that is to come.
    due: Option<(Time, FaultChange)>,
}

impl TenantFaults {
    /// Counts panics in an element of a tenant.
    pub(crate) fn count(&mut self, tenant: &str, element: &str, panics: u64, now: Time) {
        let fault = self.tenants.entry(tenant.to_owned()).or_default();
        fault.counts.panics += panics;
        element.clone_into(&mut fault.element);
        if fault.recent.add(panics, now) && fault.due.is_none() {
            fault.due = Some((now, FaultChange::Suspend));
        }
    }

    /// A change that is due, with the name of its tenant.
    pub(crate) fn due(&self, now: Time) -> Option<(String, FaultChange)> {
        let due = |(name, fault): (&String, &TenantFault)| {
            let (time, change) = fault.due?;
            (time <= now).then(|| (name.clone(), change))
        };
        self.tenants.iter().find_map(due)
    }

    /// The time of the next change.
    pub(crate) fn earliest(&self) -> Option<Time> {
        self.tenants.values().filter_map(|fault| fault.due).map(|(time, _)| time).min()
    }

    /// Notes that a tenant was suspended; returns the element that panicked last, and the pause until it starts
    /// anew.
    pub(crate) fn suspended(&mut self, tenant: &str, now: Time) -> (String, Duration) {
        let fault = self.tenants.entry(tenant.to_owned()).or_default();
        let pause = fault.backoff.after(now - fault.started);
        fault.due = Some((now + pause, FaultChange::Resume));
        (fault.element.clone(), pause)
    }

    /// Notes that a tenant's configuration started anew.
    pub(crate) fn resumed(&mut self, tenant: &str, now: Time) {
        self.started(tenant, now);
        if let Some(fault) = self.tenants.get_mut(tenant) {
            fault.counts.restarts += 1;
        }
    }

    /// Notes that a tenant has another configuration, of which nothing is known.
    pub(crate) fn started(&mut self, tenant: &str, now: Time) {
        if let Some(fault) = self.tenants.get_mut(tenant) {
            (fault.recent, fault.started, fault.due) = (RecentPanics::default(), now, None);
        }
    }

    /// The same for all tenants.
    pub(crate) fn all_started(&mut self, now: Time) {
        let names: Vec<String> = self.tenants.keys().cloned().collect();
        names.iter().for_each(|tenant| self.started(tenant, now));
    }

    /// Puts a change off that could not be made.
    pub(crate) fn put_off(&mut self, tenant: &str, now: Time) {
        if let Some((time, _)) = self.tenants.get_mut(tenant).and_then(|it| it.due.as_mut()) {
            *time = now + RETRY;
        }
    }

    /// The counts of a tenant.
    pub(crate) fn counts(&self, tenant: &str) -> FaultCounts {
        self.tenants.get(tenant).map(|fault| fault.counts).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::FaultChange::{Resume, Suspend};
    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time::default() + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_panic_now_and_then_suspends_nobody() {
        let mut faults = TenantFaults::default();
        for second in (0..300).step_by(2) {
            faults.count("red", "a", 1, at(second * 1000));
        }
        assert_eq!((faults.due(at(301_000)), faults.earliest()), (None, None));
        assert_eq!(faults.counts("red"), FaultCounts { panics: 150, restarts: 0 });
    }

    #[test]
    fn pauses_grow_while_panics_come_back() {
        let mut faults = TenantFaults::default();
        let mut now = 1000;
        for pause in [100, 200, 400, 800] {
            faults.count("red", "a", MOST_PANICS, at(now));
            faults.count("blue", "b", 1, at(now));
            assert_eq!(faults.due(at(now)), Some(("red".into(), Suspend)));
            let after = faults.suspended("red", at(now));
            assert_eq!(after, ("a".into(), Duration::from_millis(pause)));
            assert_eq!(faults.due(at(now + pause - 1)), None);
            now += pause;
            assert_eq!(faults.due(at(now)), Some(("red".into(), Resume)));
            faults.resumed("red", at(now));
            assert_eq!(faults.due(at(now)), None);
        }
        assert_eq!(faults.counts("red").restarts, 4);
        now += 61_000;
        faults.count("red", "a", MOST_PANICS, at(now));
        assert_eq!(faults.suspended("red", at(now)).1, Duration::from_millis(100));
    }

    #[test]
    fn a_new_configuration_is_not_suspended_for_the_panics_of_the_last() {
        let mut faults = TenantFaults::default();
        faults.count("red", "a", MOST_PANICS, at(0));
        faults.started("red", at(1));
        assert_eq!(faults.due(at(2)), None);
        faults.count("red", "a", MOST_PANICS - 1, at(3));
        assert_eq!(faults.due(at(3)), None);
    }

    #[test]
    fn a_change_that_failed_is_tried_again() {
        let mut faults = TenantFaults::default();
        faults.count("red", "a", MOST_PANICS, at(0));
        faults.put_off("red", at(0));
        assert_eq!(faults.due(at(0)), None);
        assert_eq!(faults.due(at(100)), Some(("red".into(), Suspend)));
    }
}
