//! Signs of life of a tenant's process.

use super::process::Parent;
use crate::tenants::RecentPanics;
use castanet_element::time::Time;
use castanet_runtime::router::{LivenessProbe, Router, Service};
use castanet_runtime::worker::driver::DriverEvent;
use castanet_tenants::sandbox::ProcessMessage;
use std::io;
use std::time::Duration;

/// The shortest interval of signs of life.
const SHORTEST: Duration = Duration::from_millis(10);

/// The service that tells the parent that the router runs, and then each time that all workers have made
/// a turn. It ends the router, which the parent starts anew, when its elements panic too often.
pub(super) struct Heartbeat {
    parent: Parent,
    /// Sentence of the first message; `None` once it is sent.
    sentence: Option<String>,
    every: Duration,
    next: Time,
    /// The probe that workers have not answered yet.
    probe: Option<LivenessProbe>,
    panics: RecentPanics,
}

impl Heartbeat {
    /// The service of a process with this confinement, which gives signs of life at an interval.
    pub(super) fn new(parent: Parent, interval: Duration, confinement: &str) -> Heartbeat {
        let every = interval.max(SHORTEST);
        let sentence = Some(format!("it has {confinement}"));
        let panics = RecentPanics::default();
        Heartbeat { parent, sentence, every, next: Time(0), probe: None, panics }
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
        let panics = router.take_panics().into_values().sum();
        if self.panics.add(panics, now) {
            // The driver is this thread.
            _ = router.line().send(DriverEvent::Interrupted);
        }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)] // In a test it is an assertion.
mod tests {
    use super::*;
    use crate::library::tests::faulty_library;
    use castanet_runtime::console::SilentConsole;
    use castanet_runtime::router::Options;
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    #[test]
    fn a_process_whose_elements_keep_panicking_ends() {
        let (parent, process) = UnixStream::pair().unwrap();
        let text = "RatedSource(RATE 2000) -> Fault(true) -> Discard;";
        let options = Options::new(Arc::new(SilentConsole));
        let mut router = Router::from_text(text, &faulty_library(), &options).unwrap();
        let mut heartbeat = Heartbeat::new(Parent::new(process), SHORTEST, "nothing");
        let outcome = router.run_with(&mut [&mut heartbeat]);
        assert!(outcome.interrupted);
        assert!(router.dismantle().panics >= 10);
        let mut line = String::new();
        BufReader::new(parent).read_line(&mut line).unwrap();
        assert_eq!(line, "running it has nothing\n");
    }
}
