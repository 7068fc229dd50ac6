//! One run of a tenant's process: its start, its messages and its end.

use super::cgroup::{Cgroup, Limits};
use super::cgroup_places::CgroupPlaces;
use super::description::{Inheritance, ProcessDescription};
use super::message::printable;
use super::{ProcessMessage, Protection, handler_calls};
use castanet_io::control::remote::{CallSocket, RemoteCalls};
use castanet_io::slots;
use std::io::{self, PipeReader, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

/// The most bytes of a line; the rest is a line of its own.
const LONGEST_LINE: usize = 1024;

/// The words by which the program runs a tenant's process.
const WORDS: [&str; 2] = ["tenants", "process"];

/// A process to be started.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// Its description; `has_memory_cgroup` is set when it starts.
    pub(crate) description: ProcessDescription,
    /// Limits of what it uses.
    pub(crate) limits: Limits,
}

impl Launch {
    /// The parent's names of its channels.
    pub(crate) fn channels(&self) -> impl Iterator<Item = String> {
        let ProcessDescription { tenant, channels, .. } = &self.description;
        channels.iter().map(move |channel| channel_name(tenant, channel))
    }
}

/// The parent's name of a tenant's channel.
pub(crate) fn channel_name(tenant: &str, device: &str) -> String {
    format!("{tenant}/{device}")
}

/// Text that arrives in pieces, as lines.
#[derive(Default)]
pub(super) struct Lines {
    unfinished: Vec<u8>,
}

impl Lines {
    /// Takes bytes; returns the lines that end in them.
    fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for &byte in bytes {
            if byte == b'\n' || self.unfinished.len() == LONGEST_LINE {
                let line = std::mem::take(&mut self.unfinished);
                lines.push(printable(&String::from_utf8_lossy(&line)));
            }
            if byte != b'\n' {
                self.unfinished.push(byte);
            }
        }
        lines
    }
}

/// A running process of a tenant.
pub(super) struct TenantProcess {
    /// The process that made the namespaces; the tenant's process ends with it.
    process: Child,
    control: UnixStream,
    control_lines: Lines,
    log: PipeReader,
    log_lines: Lines,
    /// The connection by which its handlers are called.
    calls: Arc<RemoteCalls>,
    cgroup: Cgroup,
}

impl TenantProcess {
    /// Starts a process and passes it its channels; also returns the protections that this side lacks.
    ///
    /// # Errors
    /// The program cannot be run, or there are no descriptors or no memory left.
    pub(super) fn start(
        launch: &Launch,
        group: &str,
    ) -> io::Result<(TenantProcess, Vec<(Protection, String)>)> {
        let places = CgroupPlaces::of_this_process();
        let (cgroup, mut lacking) = Cgroup::create(group, launch.limits, &places);
        let (control, theirs) = UnixStream::pair()?;
        let (log, output) = io::pipe()?;
        let (calls, their_calls) = RemoteCalls::pair()?;
        let mut command = Command::new("/proc/self/exe");
        // Secrets of the environment are none of the tenant's; the dynamic linker needs its path.
        let path = std::env::var_os("LD_LIBRARY_PATH");
        command.arg0("castanet").args(WORDS).env_clear();
        // Ctrl-C is for the parent, which ends its children in good order.
        command.process_group(0);
        command.envs(path.map(|path| ("LD_LIBRARY_PATH", path)));
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(output.try_clone()?).stderr(output);
        let process = command.spawn()?;
        // The other ends of the pipe and of the pair are the process's alone from here on.
        drop(command);
        let mut started = TenantProcess {
            process,
            control,
            control_lines: Lines::default(),
            log,
            log_lines: Lines::default(),
            calls: Arc::new(calls),
            cgroup,
        };
        let passed = started.pass(launch, their_calls, &mut lacking);
        if let Err(error) = passed {
            started.kill();
            return Err(error);
        }
        started.control.set_nonblocking(true)?;
        handler_calls::register(&launch.description.tenant, &started.calls);
        Ok((started, lacking))
    }

    /// Puts the process into its groups, and passes it its description and its ends of the channels.
    fn pass(
        &mut self,
        launch: &Launch,
        calls: CallSocket,
        lacking: &mut Vec<(Protection, String)>,
    ) -> io::Result<()> {
        if let Err(error) = self.cgroup.add(self.process.id()) {
            let why = format!("the process cannot be put into its group: {error}");
            lacking.push((Protection::MemoryCgroup, why));
        }
        let mut description = launch.description.clone();
        description.has_memory_cgroup = self.cgroup.limits_memory();
        let mut connections = Vec::new();
        for name in launch.channels() {
            let (ours, theirs) = UnixStream::pair()?;
            slots::pass(&name, ours)?;
            connections.push(theirs);
        }
        Inheritance { description, calls, connections }.send(&self.control)
    }

    /// The descriptor by which the process tells its state.
    pub(super) fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// The descriptor of its log.
    pub(super) fn log(&self) -> BorrowedFd<'_> {
        self.log.as_fd()
    }

    /// The messages that have arrived; `None` once the process has ended.
    pub(super) fn messages(&mut self) -> Option<Vec<ProcessMessage>> {
        let mut bytes = [0; 4096];
        let lines = match (&self.control).read(&mut bytes) {
            Ok(0) => return None,
            Ok(n) => self.control_lines.take(&bytes[..n]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Vec::new(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Vec::new(),
            Err(_) => return None,
        };
        Some(lines.iter().filter_map(|line| ProcessMessage::parse(line)).collect())
    }

    /// The next lines of its log, once there is something to read; `None` at the end.
    pub(super) fn log_lines(&mut self) -> Option<Vec<String>> {
        let mut bytes = [0; 4096];
        match self.log.read(&mut bytes) {
            Ok(n) if n > 0 => Some(self.log_lines.take(&bytes[..n])),
            _ => None,
        }
    }

    /// The connection by which its handlers are called.
    pub(super) fn calls(&self) -> &RemoteCalls {
        &self.calls
    }

    /// Asks the process to end in good order.
    pub(super) fn ask_to_end(&self) {
        // An ended process has no other end any more.
        _ = self.control.shutdown(Shutdown::Write);
    }

    /// Ends the process now.
    pub(super) fn kill(&mut self) {
        // It may have ended by itself.
        _ = self.process.kill();
    }

    /// Waits for the end, which [`TenantProcess::messages`] or [`TenantProcess::kill`] has brought
    /// about; returns it in words.
    pub(super) fn wait(mut self, told: Option<String>) -> String {
        let status = self.process.wait();
        if self.cgroup.memory_kills() > 0 {
            return "needed more memory than it may use".to_owned();
        }
        match (told, status) {
            (Some(told), Ok(status)) if status.signal().is_none() => told,
            (_, Ok(status)) => words(status),
            (_, Err(error)) => error.to_string(),
        }
    }
}

/// An exit status in words.
pub fn words(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match nix::sys::signal::Signal::try_from(signal) {
            Ok(name) => format!("ended by {name}"),
            Err(_) => format!("ended by signal {signal}"),
        },
        (None, Some(code)) => format!("ended with exit status {code}"),
        (None, None) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_in_pieces_and_have_a_longest_length() {
        let mut lines = Lines::default();
        assert_eq!(lines.take(b"one\ntw"), ["one"]);
        assert_eq!(lines.take(b"o\n\x1b[2J\n"), ["two", "?[2J"]);
        let cut = lines.take(&[b'x'; LONGEST_LINE + 1]);
        assert_eq!(cut, ["x".repeat(LONGEST_LINE)]);
        assert_eq!(lines.take(b"\n"), ["x"]);
    }

    #[test]
    fn ends_are_described() {
        let words = |raw| words(ExitStatus::from_raw(raw));
        assert_eq!(words(9), "ended by SIGKILL");
        assert_eq!(words(3 << 8), "ended with exit status 3");
    }
}
