//! Commands in a namespace: run to their end with a timeout, or in the background until dropped.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, Child, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::error::{Error, Result};
use crate::registry;

/// Timeout of a command, unless the caller sets another.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

/// Interval at which the caller polls for the end of a process.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Callback for each line that a process prints.
type LineCallback = Box<dyn Fn(&str) + Send + Sync>;

/// A command to run in a namespace.
pub struct Command {
    inner: process::Command,
    command_line: String,
    timeout: Duration,
    on_line: Option<LineCallback>,
    pipe_stdin: bool,
}

impl Command {
    /// Makes a command that `enter` runs in its namespace; messages show it without `enter`.
    pub(crate) fn new(enter: process::Command, program: &OsStr) -> Command {
        let mut inner = enter;
        inner.arg(program);
        let command_line = program.to_string_lossy().into_owned();
        Command { inner, command_line, timeout: DEFAULT_TIMEOUT, on_line: None, pipe_stdin: false }
    }

    /// Makes a command outside any namespace, for programs that need no network. It has the same
    /// timeout, and ends on Ctrl-C as well.
    pub fn on_host(program: impl AsRef<OsStr>) -> Command {
        let command_line = program.as_ref().to_string_lossy().into_owned();
        let inner = process::Command::new(program);
        Command { inner, command_line, timeout: DEFAULT_TIMEOUT, on_line: None, pipe_stdin: false }
    }

    /// Sets the directory to run in.
    pub fn current_dir(mut self, directory: impl AsRef<Path>) -> Command {
        self.inner.current_dir(directory);
        self
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Command {
        self.command_line.push(' ');
        self.command_line.push_str(&arg.as_ref().to_string_lossy());
        self.inner.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args(self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        args.into_iter().fold(self, Command::arg)
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Command {
        self.inner.env(name, value);
        self
    }

    /// Sets the time after which the command is killed; 20 seconds by default.
    pub fn timeout(mut self, timeout: Duration) -> Command {
        self.timeout = timeout;
        self
    }

    /// Sets a callback for each line that the command prints; the threads that read its streams
    /// call it.
    pub fn on_line(mut self, on_line: impl Fn(&str) + Send + Sync + 'static) -> Command {
        self.on_line = Some(Box::new(on_line));
        self
    }

    /// Pipes the command's standard input for [`Process::write_line`]; it is empty otherwise.
    pub fn pipe_stdin(mut self) -> Command {
        self.pipe_stdin = true;
        self
    }

    /// Runs the command to its end, with any exit status.
    pub fn output(self) -> Result<Output> {
        let timeout = self.timeout;
        let mut process = self.spawn()?;
        let status = process.wait(timeout)?;
        Ok(process.into_output(status))
    }

    /// Runs the command to its end and fails unless it succeeds.
    pub fn check(self) -> Result<Output> {
        let command_line = self.command_line.clone();
        let output = self.output()?;
        if output.success() {
            return Ok(output);
        }
        let (status, printed) = (output.status.to_string(), output.printed());
        Err(Error::Failed { command: command_line, status, printed })
    }

    /// Starts the command in the background; it is killed when the [`Process`] is dropped.
    pub fn spawn(mut self) -> Result<Process> {
        // The command gets its own process group, so that Ctrl-C reaches only this process, which
        // then ends all commands in order, each with the processes that it has started.
        self.inner
            .stdin(if self.pipe_stdin { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = registry::spawn(&mut self.inner, &self.command_line)?;
        let output = Arc::new(OutputReader::new(self.on_line));
        let pipes: [(Stream, Option<Box<dyn Read + Send>>); 2] = [
            (Stream::Out, child.stdout.take().map(|pipe| Box::new(pipe) as _)),
            (Stream::Err, child.stderr.take().map(|pipe| Box::new(pipe) as _)),
        ];
        for (stream, pipe) in pipes {
            if let Some(pipe) = pipe {
                let output = Arc::clone(&output);
                thread::spawn(move || output.read(stream, pipe));
            }
        }
        Ok(Process { child, command_line: self.command_line, output })
    }
}

/// Output and exit status of a command.
#[derive(Debug, Clone)]
pub struct Output {
    /// The exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// Whether the exit status is 0.
    pub fn success(&self) -> bool {
        self.status.success()
    }

    /// Returns standard output, then standard error.
    pub fn printed(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// A process in the background; dropping it kills the process and its process group.
pub struct Process {
    child: Child,
    command_line: String,
    output: Arc<OutputReader>,
}

impl Process {
    /// Its process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to its standard input, if that [is piped](Command::pipe_stdin).
    pub fn write_line(&mut self, line: &str) -> Result<()> {
        let Some(pipe) = &mut self.child.stdin else { return Ok(()) };
        let written = pipe.write_all(format!("{line}\n").as_bytes()).and_then(|()| pipe.flush());
        written.map_err(Error::io(format!("tell `{}` `{line}`", self.command_line)))
    }

    /// Waits until the process has printed `text`, on either stream.
    pub fn wait_for(&mut self, text: &str, timeout: Duration) -> Result<()> {
        let deadline = Instant::now() + timeout;
        let mut texts = self.output.texts();
        loop {
            if texts.out.contains(text) || texts.err.contains(text) {
                return Ok(());
            }
            let printed = || format!("{}{}", texts.out, texts.err);
            if texts.open == 0 {
                let (awaited, printed) = (text.to_owned(), printed());
                return Err(Error::Ended { command: self.command_line.clone(), awaited, printed });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let printed = format!("still waiting for `{text}`\n{}", printed());
                let command = self.command_line.clone();
                return Err(Error::TimedOut { command, after: timeout, printed });
            }
            texts = self.output.wait(texts, left);
        }
    }

    /// Returns the text that the process has printed on standard output so far.
    pub fn stdout(&self) -> String {
        self.output.texts().out.clone()
    }

    /// Returns the text that the process has printed on standard error so far.
    pub fn stderr(&self) -> String {
        self.output.texts().err.clone()
    }

    /// Whether the process still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(registry::reap(&mut self.child), Ok(None))
    }

    /// Returns the CPU time that the threads of the process have used so far.
    pub fn cpu_time(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let of_thread = |entry: std::fs::DirEntry| -> Option<u64> {
            // The fields are nanoseconds on a CPU, nanoseconds waiting for one, and time slices.
            let text = std::fs::read_to_string(entry.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse().ok()
        };
        let nanos = threads.into_iter().flatten().flatten().filter_map(of_thread).sum();
        Duration::from_nanos(nanos)
    }

    /// Returns its resident memory in bytes (`VmRSS` of proc(5)); 0 if it has ended.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let line = status.unwrap_or_default().lines().find_map(|line| {
            line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok()
        });
        line.unwrap_or(0) * 1024
    }

    /// Sends SIGINT to the process and its group, as Ctrl-C does.
    pub fn interrupt(&self) {
        registry::signal(&self.child, Signal::INT);
    }

    /// Sends SIGKILL to the process and its group; the caller should [`wait`](Process::wait) for it
    /// afterwards.
    pub fn kill(&self) {
        registry::signal(&self.child, Signal::KILL);
    }

    /// Waits for the process to end. After the timeout it is killed, which is an error.
    pub fn wait(&mut self, timeout: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + timeout;
        loop {
            match registry::reap(&mut self.child).map_err(Error::io("wait for a process"))? {
                Some(status) => {
                    self.output.finish();
                    return Ok(status);
                }
                None if Instant::now() < deadline => thread::sleep(POLL_INTERVAL),
                None => break,
            }
        }
        self.kill_and_reap();
        let texts = self.output.texts();
        let printed = format!("{}{}", texts.out, texts.err);
        Err(Error::TimedOut { command: self.command_line.clone(), after: timeout, printed })
    }

    /// Waits for the process to end and returns its output.
    pub fn finish(mut self, timeout: Duration) -> Result<Output> {
        let status = self.wait(timeout)?;
        Ok(self.into_output(status))
    }

    fn into_output(self, status: ExitStatus) -> Output {
        let texts = self.output.texts();
        Output { status, stdout: texts.out.clone(), stderr: texts.err.clone() }
    }

    fn kill_and_reap(&mut self) {
        self.kill();
        // A process cannot block SIGKILL, so that this loop ends soon.
        while let Ok(None) = registry::reap(&mut self.child) {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_and_reap();
    }
}

/// The two streams of a process.
#[derive(Clone, Copy)]
enum Stream {
    Out,
    Err,
}

/// The output of a process so far, and the threads that wait for more.
struct OutputReader {
    texts: Mutex<StreamTexts>,
    more: Condvar,
    on_line: Option<LineCallback>,
}

/// The text of both streams.
struct StreamTexts {
    out: String,
    err: String,
    /// Number of streams that have not ended.
    open: u8,
}

impl OutputReader {
    fn new(on_line: Option<LineCallback>) -> OutputReader {
        let texts = StreamTexts { out: String::new(), err: String::new(), open: 2 };
        OutputReader { texts: Mutex::new(texts), more: Condvar::new(), on_line }
    }

    fn texts(&self) -> MutexGuard<'_, StreamTexts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        texts: MutexGuard<'a, StreamTexts>,
        left: Duration,
    ) -> MutexGuard<'a, StreamTexts> {
        self.more.wait_timeout(texts, left).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Reads a stream to its end, line by line.
    fn read(&self, stream: Stream, pipe: Box<dyn Read + Send>) {
        let mut lines = BufReader::new(pipe);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
            let text = String::from_utf8_lossy(&line);
            if let Some(on_line) = &self.on_line {
                on_line(text.trim_end_matches(['\n', '\r']));
            }
            let mut texts = self.texts();
            match stream {
                Stream::Out => texts.out.push_str(&text),
                Stream::Err => texts.err.push_str(&text),
            }
            self.more.notify_all();
            line.clear();
        }
        self.texts().open -= 1;
        self.more.notify_all();
    }

    /// Waits for the streams of an ended process, for a second at most, because a child of the
    /// process may keep them open.
    fn finish(&self) {
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut texts = self.texts();
        while texts.open > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            texts = self.wait(texts, left);
        }
    }
}
