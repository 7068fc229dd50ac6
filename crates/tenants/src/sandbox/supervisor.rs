//! The thread that starts a tenant's process, hears of its state, and starts it again when it ends.

use super::child::{Launch, TenantProcess};
use super::{ProcessMessage, ProcessState, ProcessStatus, Protection};
use crate::backoff::Backoff;
use castanet_element::control::ControlWaker;
use castanet_io::slots;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time that a process has to end in good order.
const GRACE: Duration = Duration::from_millis(300);
/// Time that a process has to start.
const START: Duration = Duration::from_secs(30);
/// Time between two looks at a process that says nothing.
const LOOK: Duration = Duration::from_secs(1);
/// The time for which lines of the log, messages and answers are counted.
const SECOND: Duration = Duration::from_secs(1);
/// Lines of a process's log that are taken in a second; the process waits with further ones.
const LINES_PER_SECOND: u32 = 100;
/// Messages about its state that a process may send in a second. One at work sends at most 40; more may come at once when
/// the supervisor has had no processor.
const MESSAGES_PER_SECOND: usize = 1000;
/// Packets with answers of its handlers that are taken in a second.
const ANSWERS_PER_SECOND: u32 = 2000;
/// Messages that wait for the element; further ones are lost.
const MOST_MESSAGES: usize = 1000;

/// Number of groups made until now, for their names.
static GROUPS: AtomicU64 = AtomicU64::new(0);

/// The supervisor of a tenant's process. The process ends with this value.
pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    /// Its end stops the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// State that the thread and the element share.
struct Shared {
    report: Mutex<Report>,
    waker: ControlWaker,
}

/// The state of the process, and messages that nobody has taken.
#[derive(Default)]
struct Report {
    status: ProcessStatus,
    messages: Vec<String>,
}

impl Supervisor {
    /// Starts a process and its supervision; `waker` is called when there is a message.
    ///
    /// # Errors
    /// There can be no thread.
    pub(crate) fn start(
        launch: Launch,
        patience: Duration,
        waker: ControlWaker,
    ) -> io::Result<Supervisor> {
        let (stop, stopped) = UnixStream::pair()?;
        let shared = Arc::new(Shared { report: Mutex::default(), waker });
        let theirs = Supervision { launch, patience, stopped, shared: shared.clone() };
        let thread = std::thread::Builder::new().name("tenant-process".into());
        let thread = thread.spawn(move || theirs.run())?;
        Ok(Supervisor { shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The state of the process.
    pub(crate) fn status(&self) -> ProcessStatus {
        self.shared.report().status.clone()
    }

    /// Messages since the last call.
    pub(crate) fn take_messages(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.report().messages)
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A thread that has panicked has left a process that ends with it.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the status, and adds messages.
    fn tell(
        &self,
        change: impl FnOnce(&mut ProcessStatus),
        messages: impl IntoIterator<Item = String>,
    ) {
        let mut report = self.report();
        change(&mut report.status);
        let room = MOST_MESSAGES.saturating_sub(report.messages.len());
        report.messages.extend(messages.into_iter().take(room));
        if !report.messages.is_empty() {
            self.waker.wake();
        }
    }
}

/// The end of one run of the process.
enum RunEnd {
    /// The element has stopped it.
    Stopped,
    /// It has ended, for this reason.
    Ended(String),
    /// It cannot run as the system file wants it.
    Refused(String),
}

/// The thread's part.
struct Supervision {
    launch: Launch,
    /// Longest time between two signs of life.
    patience: Duration,
    stopped: UnixStream,
    shared: Arc<Shared>,
}

/// One run of the process, as its supervisor knows it.
struct Run {
    process: TenantProcess,
    /// The time by which the next sign of life has to come.
    deadline: Instant,
    is_running: bool,
    /// How the process says it has ended.
    told: Option<String>,
    /// The reason for which the supervisor ends it.
    fault: Option<String>,
    refusal: Option<String>,
    /// The time since which it has a channel whose connection has ended.
    broken_since: Option<Instant>,
    has_log: bool,
    has_calls: bool,
    /// The second in which lines of the log, messages and packets with answers are counted.
    second: Instant,
    lines: u32,
    messages: usize,
    answers: u32,
}

impl Supervision {
    fn run(self) {
        let mut backoff = Backoff::default();
        loop {
            let started = Instant::now();
            let end = self.run_once();
            let state = |state| {
                move |status: &mut ProcessStatus| (status.state, status.pid) = (state, None)
            };
            match end {
                RunEnd::Stopped => return,
                RunEnd::Refused(why) => {
                    let text = format!("its process is not started again: {why}");
                    self.shared.tell(state(ProcessState::Refused), [text]);
                    self.shared.tell(|it| it.last_end = why, []);
                    return;
                }
                RunEnd::Ended(why) => {
                    let pause = backoff.after(started.elapsed());
                    let text =
                        format!("its process {why}; starts again in {} ms", pause.as_millis());
                    self.shared.tell(state(ProcessState::Waiting), [text]);
                    self.shared.tell(|it| it.last_end = why, []);
                    if self.is_stopped_within(pause) {
                        return;
                    }
                }
            }
        }
    }

    /// Waits; returns whether the element has stopped the process meanwhile.
    fn is_stopped_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if readable([Some(self.stopped.as_fd())], left)[0] || left.is_zero() {
                return !left.is_zero();
            }
        }
    }

    /// Starts the process and supervises it to its end.
    fn run_once(&self) -> RunEnd {
        let number = GROUPS.fetch_add(1, Ordering::Relaxed);
        let tenant = &self.launch.description.tenant;
        let group = format!("castanet-{}-{tenant}-{number}", std::process::id());
        self.shared.tell(
            |it| {
                it.starts += 1;
                it.state = ProcessState::Starting;
            },
            [],
        );
        let (process, lacking) = match TenantProcess::start(&self.launch, &group) {
            Ok(started) => started,
            Err(error) => return RunEnd::Ended(format!("cannot be started: {error}")),
        };
        let mut run = Run::new(process);
        let missing = lacking.iter().find(|it| self.launch.description.require.contains(&it.0));
        if let Some((protection, why)) = missing {
            run.refusal = Some(format!("it requires {protection}: {why}"));
        }
        self.note_lacking(lacking);
        if run.refusal.is_none() && self.watch(&mut run) {
            run.process.kill();
            run.process.wait(None);
            return RunEnd::Stopped;
        }
        run.process.kill();
        run.process.calls().end();
        let Run { process, told, fault, refusal, .. } = run;
        let end = process.wait(told);
        match (fault, refusal) {
            (Some(why), _) => RunEnd::Ended(why),
            (None, Some(why)) => RunEnd::Refused(why),
            (None, None) => RunEnd::Ended(end),
        }
    }

    /// Follows a run to its end; returns whether the element has stopped it.
    fn watch(&self, run: &mut Run) -> bool {
        loop {
            run.start_second();
            run.process.calls().drop_late();
            let log = run.takes_log().then(|| run.process.log());
            let calls = run.takes_answers().then(|| run.process.calls().as_fd());
            let fds = [Some(self.stopped.as_fd()), Some(run.process.control()), log, calls];
            let [stopped, control, log, calls] = readable(fds, run.pause());
            if log {
                self.take_log(run);
            }
            if calls {
                run.answers += 1;
                run.has_calls = run.process.calls().take();
            }
            if stopped {
                self.end_in_good_order(run);
                return true;
            }
            if control && !self.take_messages(run) {
                while run.has_log && readable([Some(run.process.log())], Duration::ZERO)[0] {
                    self.take_log(run);
                }
                return false;
            }
            if let Some(why) = self.fault(run) {
                run.fault = Some(why);
                return false;
            }
        }
    }

    /// The reason to end a process that has not ended.
    fn fault(&self, run: &mut Run) -> Option<String> {
        if run.messages > MESSAGES_PER_SECOND {
            return Some(format!("has sent more than {MESSAGES_PER_SECOND} messages in a second"));
        }
        if Instant::now() >= run.deadline {
            let patience = if run.is_running { self.patience } else { START };
            return Some(format!("has made no progress for {} ms", patience.as_millis()));
        }
        // A process that ends breaks its channels, too, and says how it has ended a little later.
        let broken = self.launch.channels().find(|name| !slots::is_connected(name));
        let Some(name) = broken.filter(|_| run.is_running) else {
            run.broken_since = None;
            return None;
        };
        let since = *run.broken_since.get_or_insert_with(Instant::now);
        (since.elapsed() >= LOOK).then(|| format!("has broken its slot channel {name}"))
    }

    /// Waits for the end of a process that was asked to end.
    fn end_in_good_order(&self, run: &mut Run) {
        run.process.ask_to_end();
        let until = Instant::now() + GRACE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let [control] = readable([Some(run.process.control())], left);
            if left.is_zero() || control && !self.take_messages(run) {
                return;
            }
        }
    }

    /// Takes messages of the process; returns whether it has not ended.
    fn take_messages(&self, run: &mut Run) -> bool {
        let Some(messages) = run.process.messages() else { return false };
        // Lines that are no messages cost time, too.
        run.messages += messages.len().max(1);
        for message in messages {
            match message {
                ProcessMessage::Pid(pid) => self.shared.tell(|it| it.pid = Some(pid), []),
                ProcessMessage::Lacks(protection, why) => {
                    self.note_lacking(vec![(protection, why)]);
                }
                ProcessMessage::Running(sentence) => {
                    let is_first = !std::mem::replace(&mut run.is_running, true);
                    run.deadline = Instant::now() + self.patience;
                    let text = format!("its process runs: {sentence}");
                    let is_new = is_first && self.shared.report().status.confinement != sentence;
                    let change = |it: &mut ProcessStatus| {
                        (it.state, it.confinement) = (ProcessState::Running, sentence);
                    };
                    self.shared.tell(change, is_new.then_some(text));
                }
                ProcessMessage::Alive if run.is_running => {
                    run.deadline = Instant::now() + self.patience;
                }
                ProcessMessage::Alive => {}
                ProcessMessage::Refused(why) => run.refusal = Some(why),
                ProcessMessage::Ended(how) => run.told = Some(how),
            }
        }
        true
    }

    fn take_log(&self, run: &mut Run) {
        match run.process.log_lines() {
            Some(lines) => {
                run.lines += lines.len() as u32;
                self.shared.tell(|_| (), lines);
            }
            None => run.has_log = false,
        }
    }

    /// Reports protections that the kernel does not give, each once.
    fn note_lacking(&self, lacking: Vec<(Protection, String)>) {
        for (protection, why) in lacking {
            let text = format!("its process has no {protection}: {why}");
            let known = self.shared.report().status.lacking.iter().any(|it| it.0 == protection);
            if !known {
                self.shared.tell(|it| it.lacking.push((protection, why)), [text]);
            }
        }
    }
}

impl Run {
    fn new(process: TenantProcess) -> Run {
        let now = Instant::now();
        Run {
            process,
            deadline: now + START,
            is_running: false,
            told: None,
            fault: None,
            refusal: None,
            broken_since: None,
            has_log: true,
            has_calls: true,
            second: now,
            lines: 0,
            messages: 0,
            answers: 0,
        }
    }

    /// Counts from zero once a second is over.
    fn start_second(&mut self) {
        if self.second.elapsed() >= SECOND {
            self.second = Instant::now();
            (self.lines, self.messages, self.answers) = (0, 0, 0);
        }
    }

    /// Whether lines of the log may be taken in this second.
    fn takes_log(&self) -> bool {
        self.has_log && self.lines < LINES_PER_SECOND
    }

    /// Whether answers of handlers may be taken in this second.
    fn takes_answers(&self) -> bool {
        self.has_calls && self.answers < ANSWERS_PER_SECOND
    }

    /// The time until the next look.
    fn pause(&self) -> Duration {
        let now = Instant::now();
        let pause = self.deadline.saturating_duration_since(now).min(LOOK);
        // Lines and answers beyond the limit of this second wait for the next one.
        let has_limit =
            self.has_log && !self.takes_log() || self.has_calls && !self.takes_answers();
        match has_limit {
            true => pause.min((self.second + SECOND).saturating_duration_since(now)),
            false => pause,
        }
    }
}

/// Waits until one of these descriptors is readable, or the time is over; `None` is never readable.
fn readable<const N: usize>(fds: [Option<BorrowedFd<'_>>; N], time: Duration) -> [bool; N] {
    // Rounded up, so that the time is over when the call returns for that.
    let milliseconds = time.as_millis() + u128::from(!time.is_zero());
    let timeout = PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX);
    let mut wanted: Vec<PollFd<'_>> =
        fds.iter().flatten().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    // Interrupted calls have no events; callers look again.
    _ = poll(&mut wanted, timeout);
    let mut events = wanted.iter().map(|it| it.any().unwrap_or(false));
    fds.map(|fd| fd.is_some() && events.next().unwrap_or(false))
}
