//! A built program that measures the router path in a process of its own, a round at a time.

use super::measure::Run;
use super::router::{Plan, Variant};
use castanet_lab::{Command, Process};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Result of a round. The built program writes it as a line of JSON.
#[derive(Clone, Copy, Deserialize, Serialize)]
pub struct Round {
    /// The router.
    pub(crate) router: Run,
    /// The hand-written loop.
    pub(crate) limit: Run,
}

/// Time limit for a round, beside its length: on a busy machine runs are repeated.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time between two looks whether it still runs.
const PAUSE: Duration = Duration::from_millis(100);

/// A running `castanet bench router --turns` of a built program.
pub(crate) struct BuiltRouter {
    process: Process,
    rounds: Receiver<Round>,
    patience: Duration,
}

impl BuiltRouter {
    /// Starts it; `command` is the program.
    pub(crate) fn start(
        command: Command,
        variant: Variant,
        plan: &Plan,
    ) -> Result<BuiltRouter, String> {
        let (sender, rounds) = channel();
        let numbers = [
            ("--frames", variant.frames as u128),
            ("--workers", variant.workers as u128),
            ("--flows", plan.flows as u128),
            ("--routes", u128::from(plan.routes)),
            ("--milliseconds", plan.time.as_millis()),
        ];
        let words = numbers.iter().flat_map(|(name, number)| [(*name).into(), number.to_string()]);
        let words: Vec<String> = words.collect();
        let command = command.args(["bench", "router", "--turns", "--case", variant.case]);
        let command = command.args(words).pipe_stdin().on_line(move |line| {
            // It is of no use once the benchmark has ended.
            _ = serde_json::from_str(line).map(|round| sender.send(round));
        });
        let process = command.spawn().map_err(|error| error.to_string())?;
        Ok(BuiltRouter { process, rounds, patience: PATIENCE + plan.time * 2 })
    }

    /// Has it run both sides once.
    pub(crate) fn round(&mut self) -> Result<Round, String> {
        // If it has ended, that is found below.
        _ = self.process.write_line("round");
        let deadline = Instant::now() + self.patience;
        loop {
            if let Ok(round) = self.rounds.recv_timeout(PAUSE) {
                return Ok(round);
            }
            // Only then: `wait` kills a process that still runs.
            if !self.process.is_running() {
                let status = self.process.wait(PAUSE).map_err(|error| error.to_string())?;
                let why = self.process.stderr();
                return Err(format!("the built program has ended ({status}): {}", why.trim_end()));
            }
            if Instant::now() > deadline {
                return Err("the built program measures nothing".to_owned());
            }
        }
    }
}
