//! Services: work of the control thread beside the programs of elements, such as live views and the
//! control socket of an instance.

use super::Router;
use super::console::ConsoleFanout;
use crate::worker::driver::DriverEvent;
use crate::worker::earlier;
use castanet_element::control::{ChatterChannel, ChatterSubscriber, ControlWaker, DriverHandle};
use castanet_element::time::Time;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Requests of clients that a service may pass to workers in a second, however many clients there are:
/// each takes about a microsecond of a worker's time.
pub const REQUESTS_PER_SECOND: u64 = 5000;

/// Work of the control thread that belongs to no element, and goes on through hot swaps.
pub trait Service {
    /// Runs a step on the control thread, while workers run; returns the time of the next step,
    /// which comes earlier if the waker of services is called ([`Router::service_waker`]).
    fn step(&mut self, router: &mut Router) -> Option<Time>;
}

/// Interval of a live view, and its function.
pub type Watcher<'a> = (Duration, &'a mut dyn FnMut(&mut Router));

/// A function that is called at an interval.
pub struct PeriodicService<'a> {
    every: Duration,
    look: &'a mut dyn FnMut(&mut Router),
    next: Option<Time>,
}

impl<'a> PeriodicService<'a> {
    /// Calls `look` for the first time when the interval is over.
    pub fn new(every: Duration, look: &'a mut dyn FnMut(&mut Router)) -> PeriodicService<'a> {
        PeriodicService { every, look, next: None }
    }
}

impl Service for PeriodicService<'_> {
    fn step(&mut self, router: &mut Router) -> Option<Time> {
        let now = router.clock().now();
        match self.next {
            None => self.next = Some(now + self.every),
            Some(due) if due <= now => {
                (self.look)(router);
                self.next = Some(now + self.every);
            }
            Some(_) => {}
        }
        self.next
    }
}

/// The services of a run, and the time of the next step of each.
pub(super) struct ServiceSchedule<'a, 's> {
    services: &'a mut [&'s mut dyn Service],
    due: Vec<Option<Time>>,
}

impl<'a, 's> ServiceSchedule<'a, 's> {
    /// All services run their first step at `now`.
    pub(super) fn new(services: &'a mut [&'s mut dyn Service], now: Time) -> Self {
        let due = vec![Some(now); services.len()];
        ServiceSchedule { services, due }
    }

    /// Runs a step of each service that is due or was notified; returns whether there were any.
    pub(super) fn step(&mut self, router: &mut Router) -> bool {
        let now = router.clock().now();
        let all = std::mem::take(&mut router.control.wakes_services);
        let mut ran = false;
        for (service, due) in self.services.iter_mut().zip(&mut self.due) {
            if all || due.is_some_and(|due| due <= now) {
                *due = service.step(router);
                ran = true;
            }
        }
        ran
    }

    /// The time of the next step.
    pub(super) fn earliest(&self) -> Option<Time> {
        self.due.iter().copied().fold(None, earlier)
    }
}

/// The driver, as the waker of services reaches it.
struct ServiceWaker {
    driver: Sender<DriverEvent>,
    console: Arc<ConsoleFanout>,
}

impl DriverHandle for ServiceWaker {
    fn wake(&self) {
        // After the end of the router no driver receives it.
        _ = self.driver.send(DriverEvent::ServicesNotified);
    }

    fn subscribe(&self, channel: ChatterChannel, subscriber: ChatterSubscriber) {
        self.console.subscribe(channel, subscriber);
    }
}

impl Router {
    /// Has the services run a step, from any thread.
    pub fn service_waker(&self) -> ControlWaker {
        let (driver, console) = (self.control.notify.clone(), self.control.console.clone());
        ControlWaker::new(ServiceWaker { driver, console })
    }
}
