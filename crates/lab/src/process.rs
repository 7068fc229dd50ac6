//! Commands inside a namespace: run to the end within a time, or kept in the background until dropped.

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

/// How long a command may take unless it says otherwise.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often an ending process is looked at.
const POLL: Duration = Duration::from_millis(2);

/// What is done with each line that a process prints.
type OnLine = Box<dyn Fn(&str) + Send + Sync>;

/// A command to be run in a namespace.
pub struct Command {
    inner: process::Command,
    shown: String,
    patience: Duration,
    on_line: Option<OnLine>,
    listens: bool,
}

impl Command {
    /// A command that `enter` leads into its namespace; messages show it without that.
    pub(crate) fn new(enter: process::Command, program: &OsStr) -> Command {
        let mut inner = enter;
        inner.arg(program);
        let shown = program.to_string_lossy().into_owned();
        Command { inner, shown, patience: PATIENCE, on_line: None, listens: false }
    }

    /// A command outside any namespace, for what needs no network: the same patience, and the same
    /// end on Ctrl-C.
    pub fn outside(program: impl AsRef<OsStr>) -> Command {
        let shown = program.as_ref().to_string_lossy().into_owned();
        let inner = process::Command::new(program);
        Command { inner, shown, patience: PATIENCE, on_line: None, listens: false }
    }

    /// Sets the directory to run in.
    pub fn current_dir(mut self, directory: impl AsRef<Path>) -> Command {
        self.inner.current_dir(directory);
        self
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Command {
        self.shown.push(' ');
        self.shown.push_str(&arg.as_ref().to_string_lossy());
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

    /// Says how long the command may take before it is killed; 20 seconds otherwise.
    pub fn timeout(mut self, patience: Duration) -> Command {
        self.patience = patience;
        self
    }

    /// Calls `on_line` with each line as it is printed, from the threads that read them.
    pub fn on_line(mut self, on_line: impl Fn(&str) + Send + Sync + 'static) -> Command {
        self.on_line = Some(Box::new(on_line));
        self
    }

    /// Lets [`Process::say`] write to the command's standard input, which is empty otherwise.
    pub fn listens(mut self) -> Command {
        self.listens = true;
        self
    }

    /// Runs the command to its end, whatever its exit status.
    pub fn output(self) -> Result<Output> {
        let patience = self.patience;
        let mut process = self.spawn()?;
        let status = process.wait(patience)?;
        Ok(process.into_output(status))
    }

    /// Runs the command to its end and fails unless it succeeds.
    pub fn check(self) -> Result<Output> {
        let shown = self.shown.clone();
        let output = self.output()?;
        if output.success() {
            return Ok(output);
        }
        let (status, printed) = (output.status.to_string(), output.printed());
        Err(Error::Failed { command: shown, status, printed })
    }

    /// Starts the command in the background; it is killed when the [`Process`] is dropped.
    pub fn spawn(mut self) -> Result<Process> {
        // Its own group: Ctrl-C reaches this process alone, which then ends all others in order,
        // and what a command starts itself is ended with it.
        self.inner
            .stdin(if self.listens { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = registry::spawn(&mut self.inner, &self.shown)?;
        let heard = Arc::new(Heard::new(self.on_line));
        let pipes: [(Stream, Option<Box<dyn Read + Send>>); 2] = [
            (Stream::Out, child.stdout.take().map(|pipe| Box::new(pipe) as _)),
            (Stream::Err, child.stderr.take().map(|pipe| Box::new(pipe) as _)),
        ];
        for (stream, pipe) in pipes {
            if let Some(pipe) = pipe {
                let heard = Arc::clone(&heard);
                thread::spawn(move || heard.listen(stream, pipe));
            }
        }
        Ok(Process { child, shown: self.shown, heard })
    }
}

/// What a command printed and how it ended.
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

    /// Standard output, then standard error.
    pub fn printed(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// A process in the background, killed with all that it started when dropped.
pub struct Process {
    child: Child,
    shown: String,
    heard: Arc<Heard>,
}

impl Process {
    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to its standard input, if it [listens](Command::listens).
    pub fn say(&mut self, line: &str) -> Result<()> {
        let Some(pipe) = &mut self.child.stdin else { return Ok(()) };
        let written = pipe.write_all(format!("{line}\n").as_bytes()).and_then(|()| pipe.flush());
        written.map_err(Error::io(format!("tell `{}` `{line}`", self.shown)))
    }

    /// Waits until the process has printed `text`, on either stream.
    pub fn wait_for(&mut self, text: &str, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        let mut said = self.heard.said();
        loop {
            if said.out.contains(text) || said.err.contains(text) {
                return Ok(());
            }
            let printed = || format!("{}{}", said.out, said.err);
            if said.open == 0 {
                let (awaited, printed) = (text.to_owned(), printed());
                return Err(Error::Ended { command: self.shown.clone(), awaited, printed });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let printed = format!("still waiting for `{text}`\n{}", printed());
                let command = self.shown.clone();
                return Err(Error::TimedOut { command, after: patience, printed });
            }
            said = self.heard.wait(said, left);
        }
    }

    /// All that the process has printed so far on standard output.
    pub fn stdout(&self) -> String {
        self.heard.said().out.clone()
    }

    /// All that the process has printed so far on standard error.
    pub fn stderr(&self) -> String {
        self.heard.said().err.clone()
    }

    /// Whether the process is still there.
    pub fn is_running(&mut self) -> bool {
        matches!(registry::reap(&mut self.child), Ok(None))
    }

    /// Processor time that the threads of the process have used so far.
    pub fn cpu_time(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let of_thread = |entry: std::fs::DirEntry| -> Option<u64> {
            // Nanoseconds on a processor, then waiting for one, then how often.
            let text = std::fs::read_to_string(entry.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse().ok()
        };
        let nanos = threads.into_iter().flatten().flatten().filter_map(of_thread).sum();
        Duration::from_nanos(nanos)
    }

    /// Bytes of memory that it has now (`VmRSS` of proc(5)); 0 if it has ended.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let line = status.unwrap_or_default().lines().find_map(|line| {
            line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok()
        });
        line.unwrap_or(0) * 1024
    }

    /// Asks the process to end, as Ctrl-C does.
    pub fn interrupt(&self) {
        registry::signal(&self.child, Signal::INT);
    }

    /// Kills the process, as `kill -9` does; [`wait`](Process::wait) for it afterwards.
    pub fn kill(&self) {
        registry::signal(&self.child, Signal::KILL);
    }

    /// Waits for the process to end; one that takes too long is killed and an error.
    pub fn wait(&mut self, patience: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            match registry::reap(&mut self.child).map_err(Error::io("wait for a process"))? {
                Some(status) => {
                    self.heard.finish();
                    return Ok(status);
                }
                None if Instant::now() < deadline => thread::sleep(POLL),
                None => break,
            }
        }
        self.end();
        let said = self.heard.said();
        let printed = format!("{}{}", said.out, said.err);
        Err(Error::TimedOut { command: self.shown.clone(), after: patience, printed })
    }

    /// Waits for the process to end and returns all that it printed.
    pub fn finish(mut self, patience: Duration) -> Result<Output> {
        let status = self.wait(patience)?;
        Ok(self.into_output(status))
    }

    fn into_output(self, status: ExitStatus) -> Output {
        let said = self.heard.said();
        Output { status, stdout: said.out.clone(), stderr: said.err.clone() }
    }

    fn end(&mut self) {
        self.kill();
        // SIGKILL cannot be refused, so this ends at once.
        while let Ok(None) = registry::reap(&mut self.child) {
            thread::sleep(POLL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// The two streams of a process.
#[derive(Clone, Copy)]
enum Stream {
    Out,
    Err,
}

/// What a process has said so far, and whoever waits for more.
struct Heard {
    said: Mutex<Said>,
    more: Condvar,
    on_line: Option<OnLine>,
}

struct Said {
    out: String,
    err: String,
    /// Streams that have not ended.
    open: u8,
}

impl Heard {
    fn new(on_line: Option<OnLine>) -> Heard {
        let said = Said { out: String::new(), err: String::new(), open: 2 };
        Heard { said: Mutex::new(said), more: Condvar::new(), on_line }
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, said: MutexGuard<'a, Said>, left: Duration) -> MutexGuard<'a, Said> {
        self.more.wait_timeout(said, left).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Reads a stream to its end, line by line.
    fn listen(&self, stream: Stream, pipe: Box<dyn Read + Send>) {
        let mut lines = BufReader::new(pipe);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
            let text = String::from_utf8_lossy(&line);
            if let Some(on_line) = &self.on_line {
                on_line(text.trim_end_matches(['\n', '\r']));
            }
            let mut said = self.said();
            match stream {
                Stream::Out => said.out.push_str(&text),
                Stream::Err => said.err.push_str(&text),
            }
            self.more.notify_all();
            line.clear();
        }
        self.said().open -= 1;
        self.more.notify_all();
    }

    /// Waits for the streams of an ended process; a child that holds them on is not waited for long.
    fn finish(&self) {
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut said = self.said();
        while said.open > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            said = self.wait(said, left);
        }
    }
}
