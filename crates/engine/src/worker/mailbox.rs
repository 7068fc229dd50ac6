//! How others reach a worker: errands, wake-ups, and the end of its sleep.

use super::Worker;
use mio::{Events, Interest, Poll, Token, Waker, unix::SourceFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Something to do on a worker between two bursts.
pub(crate) type Errand = Box<dyn FnOnce(&mut Worker) + Send>;

/// The token of the waker; tasks have their number.
const WAKE: Token = Token(usize::MAX);
/// The token of the alarm clock.
const ALARM: Token = Token(usize::MAX - 1);
/// The shortest sleep. Who is due every few microseconds catches up in bursts
/// instead, at some thousands of wake-ups a second.
const NAP: Duration = Duration::from_micros(250);

/// What other threads may touch of a worker.
pub(crate) struct Shared {
    mail: AtomicBool,
    asleep: AtomicBool,
    waker: Waker,
    errands: Sender<Errand>,
    /// By task: whether it waits for somebody to put packets where it pulls.
    waiting: Vec<AtomicBool>,
    /// By task: whether somebody did.
    woken: Vec<AtomicBool>,
}

/// A worker's own end.
pub(crate) struct Mailbox {
    poll: Poll,
    events: Events,
    errands: Receiver<Errand>,
    registered: Vec<Option<i32>>,
    /// Ends sleeps to the microsecond, where `epoll` knows milliseconds only.
    alarm: TimerFd,
}

/// The two ends, for a worker with that many tasks.
pub(crate) fn pair(tasks: usize) -> io::Result<(Shared, Mailbox)> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKE)?;
    let alarm =
        TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
    let fd = alarm.as_fd().as_raw_fd();
    poll.registry().register(&mut SourceFd(&fd), ALARM, Interest::READABLE)?;
    let (errands, receiver) = channel();
    let flags = || (0..tasks).map(|_| AtomicBool::new(false)).collect();
    let shared = Shared {
        mail: AtomicBool::new(false),
        asleep: AtomicBool::new(false),
        waker,
        errands,
        waiting: flags(),
        woken: flags(),
    };
    let events = Events::with_capacity(64);
    Ok((shared, Mailbox { poll, events, errands: receiver, registered: vec![None; tasks], alarm }))
}

impl Shared {
    /// Leaves an errand; the worker runs it between two bursts.
    pub(crate) fn send(&self, errand: Errand) {
        // A worker that is gone has nothing left to be asked.
        _ = self.errands.send(errand);
        self.ring();
    }

    fn ring(&self) {
        self.mail.store(true, SeqCst);
        if self.asleep.load(SeqCst) {
            // The worker also wakes by itself, later: a failed write loses time only.
            _ = self.waker.wake();
        }
    }

    /// Whether there is anything to look at; clears the sign.
    pub(crate) fn has_mail(&self) -> bool {
        self.mail.load(SeqCst) && self.mail.swap(false, SeqCst)
    }

    /// Wakes a task that waits for packets; does nothing if it does not.
    pub(crate) fn wake_task(&self, task: usize) {
        if self.waiting[task].load(SeqCst) && self.waiting[task].swap(false, SeqCst) {
            self.woken[task].store(true, SeqCst);
            self.ring();
        }
    }

    /// Says that `task` waits; it must look once more before it rests.
    pub(crate) fn wait(&self, task: usize) {
        self.waiting[task].store(true, SeqCst);
    }

    /// Whether nobody has woken `task` since it said that it waits.
    pub(crate) fn still_waits(&self, task: usize) -> bool {
        self.waiting[task].load(SeqCst)
    }

    /// Says that `task` waits no longer, for it is gone.
    pub(crate) fn forget(&self, task: usize) {
        self.waiting[task].store(false, SeqCst);
    }

    /// Takes note of the tasks that others have woken.
    pub(crate) fn woken(&self, mut f: impl FnMut(usize)) {
        for (task, woken) in self.woken.iter().enumerate() {
            if woken.swap(false, SeqCst) {
                f(task);
            }
        }
    }
}

impl Mailbox {
    /// The next errand.
    pub(crate) fn next(&mut self) -> Option<Errand> {
        self.errands.try_recv().ok()
    }

    /// Wants to hear when `fd` has something for `task`.
    pub(crate) fn watch(&mut self, task: usize, fd: i32) -> io::Result<()> {
        if self.registered[task] == Some(fd) {
            return Ok(());
        }
        self.forget(task);
        self.poll.registry().register(&mut SourceFd(&fd), Token(task), Interest::READABLE)?;
        self.registered[task] = Some(fd);
        Ok(())
    }

    /// Wants to hear no more of the descriptor that `task` watches.
    pub(crate) fn forget(&mut self, task: usize) {
        let Some(fd) = self.registered[task].take() else { return };
        // One that was closed has left by itself, and its number may be another's.
        if !self.registered.contains(&Some(fd)) {
            _ = self.poll.registry().deregister(&mut SourceFd(&fd));
        }
    }

    /// Whether any task watches a file descriptor.
    pub(crate) fn watches(&self) -> bool {
        self.registered.iter().any(Option::is_some)
    }

    /// Sleeps for at most `time`, unless there is mail; then names the tasks
    /// whose descriptors have something.
    pub(crate) fn sleep(
        &mut self,
        shared: &Shared,
        time: Option<Duration>,
        mut ready: impl FnMut(usize),
    ) {
        shared.asleep.store(true, SeqCst);
        let time = if shared.mail.load(SeqCst) { Some(Duration::ZERO) } else { time };
        let time = time.map(|time| if time.is_zero() { time } else { self.set_alarm(time) });
        // An interrupted sleep is a short one.
        _ = self.poll.poll(&mut self.events, time);
        shared.asleep.store(false, SeqCst);
        let tasks = self.registered.len();
        self.events.iter().map(|e| e.token().0).filter(|&task| task < tasks).for_each(&mut ready);
    }

    /// Sets the alarm in `time`; the longest that `epoll` may then sleep.
    fn set_alarm(&self, time: Duration) -> Duration {
        let time = time.max(NAP);
        let at = Expiration::OneShot(TimeSpec::from_duration(time));
        // Without an alarm the sleep is rounded to the next millisecond.
        _ = self.alarm.set(at, TimerSetTimeFlags::empty());
        time + Duration::from_millis(1)
    }
}
