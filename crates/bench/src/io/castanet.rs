//! Castanet itself, as a process like the others.

use super::cores;
use super::meter::Meter;
use castanet_lab::{Command, Process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Time limit for the start, and for packets to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// The line that it writes once it forwards.
const READY: &str = "castanet: running";

/// Name of the element that sends.
pub(super) const OUT: &str = "out";

/// The program to start: one that was built, or this one.
pub(super) fn program(built: Option<&Path>) -> Result<PathBuf, String> {
    let own = || std::env::current_exe().map_err(|error| error.to_string());
    built.map_or_else(own, |built| Ok(built.to_owned()))
}

/// A running `castanet run`.
pub(crate) struct Castanet {
    process: Process,
    looks: Receiver<f64>,
}

impl Castanet {
    /// Starts it on one core, to say every `interval` what it sends a second.
    /// `command` is the program, where it is to run.
    pub(super) fn start(
        core: usize,
        command: Command,
        words: &[String],
        configuration: &str,
        interval: Duration,
    ) -> Result<Castanet, String> {
        let (sender, looks) = channel();
        let interval = interval.as_secs_f64().max(0.01);
        let command = command
            .args(["run", "--watch", "--json", "--interval", &interval.to_string()])
            .args(words)
            .args(["-e", configuration])
            .on_line(move |line| _ = rate(line).map(|rate| sender.send(rate)));
        let spawned = cores::on(core, || command.spawn())?;
        let mut process = spawned.map_err(|error| error.to_string())?;
        process.wait_for(READY, PATIENCE).map_err(|error| error.to_string())?;
        Ok(Castanet { process, looks })
    }

    /// Moves all of its threads but the workers to a core.
    pub(super) fn move_others(&self, core: usize) -> Result<(), String> {
        let folder = format!("/proc/{}/task", self.process.id());
        let threads = std::fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
        for thread in threads.flatten() {
            let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
            let number = thread.file_name().to_string_lossy().parse();
            if let (false, Ok(number)) = (is_worker(&name), number) {
                cores::pin(number, core)?;
            }
        }
        Ok(())
    }

    /// Waits until packets have been sent for `time`.
    pub(super) fn warm_up(&mut self, time: Duration) -> Result<(), String> {
        let mut deadline = Instant::now() + PATIENCE;
        while self.look(deadline)? == 0.0 {}
        deadline = Instant::now() + time;
        while Instant::now() < deadline {
            self.look(Instant::now() + PATIENCE)?;
        }
        Ok(())
    }

    /// Packets a second since the look before.
    pub(super) fn look(&mut self, deadline: Instant) -> Result<f64, String> {
        let left = deadline.saturating_duration_since(Instant::now());
        self.looks.recv_timeout(left).map_err(|_| match self.process.is_running() {
            true => "no packets came".to_owned(),
            false => format!("it has ended: {}", self.process.stderr()),
        })
    }

    /// As `look`, without the values that arrived before the call.
    pub(super) fn look_anew(&mut self) -> Result<f64, String> {
        while self.looks.try_recv().is_ok() {}
        self.look(Instant::now() + PATIENCE)
    }

    /// Its time.
    pub(crate) fn meter(&self) -> Meter {
        Meter::default().process(self.process.id())
    }
}

/// Whether a thread of this name is a worker: they are numbered.
fn is_worker(name: &str) -> bool {
    let number = name.trim().strip_prefix("castanet-").unwrap_or_default();
    number.starts_with(|digit: char| digit.is_ascii_digit())
}

/// The sending element's packets a second, from a line of `--watch --json`.
fn rate(line: &str) -> Option<f64> {
    let look: Value = serde_json::from_str(line).ok()?;
    let elements = look.get("elements")?.as_array()?;
    let out = elements.iter().find(|it| it.get("element").is_some_and(|name| name == OUT));
    Some(out.and_then(|it| it.get("packets_per_second")?.as_f64()).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_sending_element() {
        let line = r#"{"seconds":1.0,"elements":[{"element":"in","packets_per_second":5.0},
            {"element":"out","packets_per_second":4.5}]}"#;
        assert_eq!(rate(line), Some(4.5));
        assert_eq!(rate(r#"{"seconds":1.0,"elements":[]}"#), Some(0.0));
        assert_eq!(rate("castanet: running"), None);
    }
}
