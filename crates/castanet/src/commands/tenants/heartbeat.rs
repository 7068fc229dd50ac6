//! Signs of life of a tenant's process.

use super::process::Parent;
use castanet_element::time::Time;
use castanet_runtime::router::{LivenessProbe, Router, Service};
use castanet_runtime::worker::driver::DriverEvent;
use castanet_tenants::sandbox::{ProcessDescription, ProcessMessage};
use std::io;
use std::time::Duration;

/// The service that tells the parent that the router runs, and then each time that all workers have made
/// a turn.
pub(super) struct Heartbeat {
    parent: Parent,
    /// Sentence of the first message; `None` once it is sent.
    sentence: Option<String>,
    every: Duration,
    next: Time,
    /// The probe that workers have not answered yet.
    probe: Option<LivenessProbe>,
}

impl Heartbeat {
    /// The service of a process of this description.
    pub(super) fn new(
        parent: Parent,
        description: &ProcessDescription,
        confinement: &str,
    ) -> Heartbeat {
        let every = Duration::from_millis(description.interval.max(10));
        let sentence = Some(format!("it has {confinement}"));
        Heartbeat { parent, sentence, every, next: Time(0), probe: None }
    }

    /// Ends the router when the parent closes its end of the connection.
    ///
    /// # Errors
    /// There can be no thread.
    pub(super) fn end_with(&self, router: &Router) -> io::Result<()> {
        let (parent, line) = (self.parent.clone(), router.line());
        let thread = std::thread::Builder::new().name("parent".into());
        thread.spawn(move || {
            parent.wait_for_end();
            // After the end of the router no driver receives it.
            _ = line.send(DriverEvent::Interrupted);
        })?;
        Ok(())
    }
}

impl Service for Heartbeat {
    fn step(&mut self, router: &mut Router) -> Option<Time> {
        if let Some(sentence) = self.sentence.take() {
            self.parent.tell(&ProcessMessage::Running(sentence));
        }
        let now = router.clock().now();
        if now < self.next {
            return Some(self.next);
        }
        let is_answered = self.probe.as_mut().map(LivenessProbe::is_answered);
        if is_answered == Some(true) {
            self.parent.tell(&ProcessMessage::Alive);
        }
        if is_answered != Some(false) {
            self.probe = Some(router.probe_liveness());
        }
        self.next = now + self.every;
        Some(self.next)
    }
}
