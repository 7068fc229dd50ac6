//! A process that is confined as that of a tenant, and says what it can still do.

use super::child::{Launch, TenantProcess};
use super::{Limits, ProcessDescription, ProcessMessage, Protection};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::time::{Duration, Instant};

/// The answers of a confined process.
pub struct ProbeReport {
    /// A line for each action that was tried and for each protection that lacks.
    pub text: String,
    /// Protections that the kernel does not give.
    pub lacking: Vec<Protection>,
}

impl ProbeReport {
    /// Whether all protections hold, and all actions were refused.
    pub fn is_tight(&self) -> bool {
        let refused = self.text.lines().filter(|line| line.contains(": refused")).count();
        self.lacking.is_empty() && refused > 0 && refused == self.text.lines().count()
    }
}

/// Starts a process, confines it as that of a tenant with a limit of memory and of processor time, and
/// has it try what it must not be able to do.
///
/// # Errors
/// The process cannot be started, or takes longer than `patience`.
pub fn probe(patience: Duration) -> io::Result<ProbeReport> {
    let limits = Limits { memory: Some(64 << 20), cpu: Some(0.5), cpu_guarantee: 0.0 };
    let description = ProcessDescription {
        tenant: "probe".to_owned(),
        graph: "Idle -> Discard;".to_owned(),
        channels: Vec::new(),
        memory: limits.memory,
        has_memory_cgroup: false,
        require: Vec::new(),
        interval: 1000,
        probe: true,
    };
    let group = format!("castanet-{}-probe", std::process::id());
    let (mut process, mut lacking) = TenantProcess::start(&Launch { description, limits }, &group)?;
    let (mut text, mut ended) = (String::new(), None);
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut wanted = [PollFd::new(process.control(), PollFlags::POLLIN)];
        poll(&mut wanted, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX))?;
        if left.is_zero() {
            process.kill();
            process.wait(None);
            return Err(io::ErrorKind::TimedOut.into());
        }
        let Some(messages) = process.messages() else { break };
        for message in messages {
            match message {
                ProcessMessage::Lacks(protection, why) => lacking.push((protection, why)),
                ProcessMessage::Ended(how) => ended = Some(how),
                _ => {}
            }
        }
    }
    while let Some(lines) = process.log_lines() {
        lines.iter().for_each(|line| text = std::mem::take(&mut text) + line + "\n");
    }
    let end = process.wait(ended);
    if end != "ended with exit status 0" {
        text = text + "the process " + &end + "\n";
    }
    for (protection, why) in &lacking {
        text = text + "no " + protection.name() + ": " + why + "\n";
    }
    Ok(ProbeReport { text, lacking: lacking.into_iter().map(|it| it.0).collect() })
}
