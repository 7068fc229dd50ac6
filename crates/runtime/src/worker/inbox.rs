//! How other threads reach a worker: commands, wake-ups, and the end of its sleep.

use super::Worker;
use mio::{Events, Interest, Poll, Token, Waker, unix::SourceFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// A call on a worker between two bursts.
pub(crate) type Command = Box<dyn FnOnce(&mut Worker) + Send>;

/// Token of the waker; the token of a task is its number.
const WAKE: Token = Token(usize::MAX);
/// Token of the alarm.
const ALARM: Token = Token(usize::MAX - 1);
/// The shortest sleep. A task that is due every few microseconds catches up in bursts instead, at
/// some thousands of wake-ups a second.
const NAP: Duration = Duration::from_micros(250);

/// The part of a worker that other threads reach.
// Whole pairs of cache lines: those of all workers lie side by side.
#[repr(align(128))]
pub(crate) struct WorkerHandle {
    pending: AtomicBool,
    asleep: AtomicBool,
    waker: Waker,
    commands: Sender<Command>,
    /// By task: whether it waits for packets where it pulls, or for room.
    waiting: Vec<AtomicBool>,
    /// By task: whether another worker has woken it.
    woken: Vec<AtomicBool>,
}

/// The part of an inbox that the worker owns.
pub(crate) struct Inbox {
    poll: Poll,
    events: Events,
    commands: Receiver<Command>,
    registered: Vec<Option<i32>>,
    /// Ends sleeps to the microsecond; `epoll` alone does to the millisecond.
    alarm: TimerFd,
}

/// Both parts, for a worker with that many tasks.
pub(crate) fn pair(tasks: usize) -> io::Result<(WorkerHandle, Inbox)> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKE)?;
    let alarm =
        TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
    let fd = alarm.as_fd().as_raw_fd();
    poll.registry().register(&mut SourceFd(&fd), ALARM, Interest::READABLE)?;
    let (commands, receiver) = channel();
    let flags = || (0..tasks).map(|_| AtomicBool::new(false)).collect();
    let shared = WorkerHandle {
        pending: AtomicBool::new(false),
        asleep: AtomicBool::new(false),
        waker,
        commands,
        waiting: flags(),
        woken: flags(),
    };
    let events = Events::with_capacity(64);
    Ok((shared, Inbox { poll, events, commands: receiver, registered: vec![None; tasks], alarm }))
}

impl WorkerHandle {
    /// Sends a command; the worker runs it between two bursts.
    pub(crate) fn send(&self, command: Command) {
        // A worker that is gone runs no commands.
        _ = self.commands.send(command);
        self.ring();
    }

    fn ring(&self) {
        self.pending.store(true, SeqCst);
        if self.asleep.load(SeqCst) {
            // The worker also wakes by itself: a failed write costs time only.
            _ = self.waker.wake();
        }
    }

    /// Whether there are commands or wake-ups; clears the flag.
    pub(crate) fn take_pending(&self) -> bool {
        self.pending.load(SeqCst) && self.pending.swap(false, SeqCst)
    }

    /// Wakes a task that waits; without effect if it does not.
    pub(crate) fn wake_task(&self, task: usize) {
        if self.waiting[task].load(SeqCst) && self.waiting[task].swap(false, SeqCst) {
            self.woken[task].store(true, SeqCst);
            self.ring();
        }
    }

    /// Notes that `task` waits; it must look once more before it rests.
    pub(crate) fn wait(&self, task: usize) {
        self.waiting[task].store(true, SeqCst);
    }

    /// Whether no other worker has woken `task` since it said that it waits.
    pub(crate) fn still_waits(&self, task: usize) -> bool {
        self.waiting[task].load(SeqCst)
    }

    /// Notes that `task` waits no longer, for it has moved.
    pub(crate) fn forget(&self, task: usize) {
        self.waiting[task].store(false, SeqCst);
    }

    /// Calls `f` with each task that other workers have woken.
    pub(crate) fn woken(&self, mut f: impl FnMut(usize)) {
        for (task, woken) in self.woken.iter().enumerate() {
            if woken.swap(false, SeqCst) {
                f(task);
            }
        }
    }
}

impl Inbox {
    /// The next command.
    pub(crate) fn next(&mut self) -> Option<Command> {
        self.commands.try_recv().ok()
    }

    /// Watches a descriptor for a task.
    pub(crate) fn watch(&mut self, task: usize, fd: i32) -> io::Result<()> {
        if self.registered[task] == Some(fd) {
            return Ok(());
        }
        self.forget(task);
        self.poll.registry().register(&mut SourceFd(&fd), Token(task), Interest::READABLE)?;
        self.registered[task] = Some(fd);
        Ok(())
    }

    /// Stops watching the descriptor of a task.
    pub(crate) fn forget(&mut self, task: usize) {
        let Some(fd) = self.registered[task].take() else { return };
        // A closed descriptor has left by itself, and its number may be reused.
        if !self.registered.contains(&Some(fd)) {
            _ = self.poll.registry().deregister(&mut SourceFd(&fd));
        }
    }

    /// Whether any task watches a file descriptor.
    pub(crate) fn watches(&self) -> bool {
        self.registered.iter().any(Option::is_some)
    }

    /// Sleeps for at most `time`, unless there are commands; then calls `ready` with the tasks
    /// whose descriptors are readable.
    pub(crate) fn sleep(
        &mut self,
        shared: &WorkerHandle,
        time: Option<Duration>,
        mut ready: impl FnMut(usize),
    ) {
        shared.asleep.store(true, SeqCst);
        let time = if shared.pending.load(SeqCst) { Some(Duration::ZERO) } else { time };
        let time = time.map(|time| if time.is_zero() { time } else { self.set_alarm(time) });
        // An interrupted sleep is a short one.
        _ = self.poll.poll(&mut self.events, time);
        shared.asleep.store(false, SeqCst);
        let tasks = self.registered.len();
        self.events.iter().map(|e| e.token().0).filter(|&task| task < tasks).for_each(&mut ready);
    }

    /// Sets the alarm; returns the longest time that `epoll` may then sleep.
    fn set_alarm(&self, time: Duration) -> Duration {
        let time = time.max(NAP);
        let at = Expiration::OneShot(TimeSpec::from_duration(time));
        // Without an alarm the sleep is rounded to the next millisecond.
        _ = self.alarm.set(at, TimerSetTimeFlags::empty());
        time + Duration::from_millis(1)
    }
}
