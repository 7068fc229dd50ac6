//! One worker: its elements, its tasks, its timers and its inbox.
//!
//! Handlers travel to the state; the state never travels. A worker looks into
//! its inbox between two bursts, so a handler has `&mut` to its node and no
//! element needs a lock, an atomic or `unsafe`.

pub(crate) mod calls;
pub mod core;
pub(crate) mod exec;
pub(crate) mod mailbox;
mod meter;
mod pass;
mod task;
mod thread;
mod travel;
pub(crate) mod visits;

pub(crate) use mailbox::{Mailbox, Shared};
pub(crate) use meter::Meter;
pub(crate) use task::{Job, Tasks};
pub(crate) use thread::run as run_thread;

use self::core::Core;
use crate::args::ArgError;
use crate::cx::Cx;
use crate::element::Asked;
use crate::node::{self, Rewritten, Slot, THROWN};
use crate::router::Notice;
use crate::time::{Clock, Time};
use castanet_packet::Batch;
use std::sync::Arc;
use visits::Why;

/// A task of some worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskRef {
    /// Which worker.
    pub worker: usize,
    /// Which of its tasks.
    pub task: usize,
}

/// Where lines that elements write go; the program decides.
pub trait Console: Send + Sync {
    /// Whole lines for standard error.
    fn chatter(&self, lines: &str);
    /// Text for standard output.
    fn print(&self, text: &str);
}

/// What a turn of a worker came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// It did something.
    Ran,
    /// Nothing to do before this time, or before somebody wakes it.
    Idle(Option<Time>),
    /// Packets wait for a call to be made.
    Calls,
}

/// One worker.
pub struct Worker {
    pub(crate) index: usize,
    pub(crate) slots: Vec<Slot>,
    pub(crate) core: Core,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Arc<Clock>,
    pub(crate) console: Arc<dyn Console>,
    pub(crate) shared: Arc<Vec<Shared>>,
    pub(crate) mailbox: Mailbox,
    /// What the tasks cost, where somebody wants to know.
    pub(crate) meter: Option<Meter>,
    /// Stop requests and handler calls of the elements, to the driver.
    pub(crate) stop_line: std::sync::mpsc::Sender<Notice>,
}

impl Worker {
    /// Lets element `me` prepare itself, on its home worker or on each.
    pub(crate) fn begin(&mut self, me: usize) -> Result<(), ArgError> {
        self.core.now = self.clock.now();
        let Some(node) = node::at_mut(&mut self.slots, me) else { return Ok(()) };
        let done = node.begin(&mut Cx { core: &mut self.core, me, nodes: None });
        self.after();
        done
    }

    /// Lets element `me` change what is not its own. What it emits waits for
    /// [`Worker::run_emitted`].
    pub(crate) fn start(&mut self, me: usize) -> Result<(), ArgError> {
        self.core.now = self.clock.now();
        let mut done = Ok(());
        exec::act(&mut self.slots, &mut self.core, me, |node, cx| done = node.start(cx));
        done
    }

    /// Runs what elements emitted when they started or resumed.
    pub(crate) fn run_emitted(&mut self) {
        match self.core.visits {
            None => exec::drain::<false>(&mut self.slots, &mut self.core),
            Some(_) => exec::drain::<true>(&mut self.slots, &mut self.core),
        }
        self.after();
    }

    /// Lets element `me` see to the state that it has from another's place. What it emits waits
    /// for [`Worker::run_emitted`].
    pub(crate) fn resume(&mut self, me: usize) {
        self.core.now = self.clock.now();
        exec::act(&mut self.slots, &mut self.core, me, |node, cx| node.resume(cx));
    }

    /// Tells every element that began here that it is over, then lets what
    /// that emits run. `begun` says by element where it began.
    pub(crate) fn end(&mut self, begun: &[Vec<usize>]) {
        self.core.now = self.clock.now();
        for (me, workers) in begun.iter().enumerate() {
            if workers.contains(&self.index) {
                exec::call(&mut self.slots, &mut self.core, me, |node, cx| node.end(cx));
            }
        }
        self.after();
    }

    /// Gives a batch to an input, as if a neighbour had pushed it.
    pub fn inject(&mut self, node: usize, port: usize, batch: Batch) {
        self.core.now = self.clock.now();
        self.core.pulls = 0;
        // Packets that wait for a call go on first.
        self.core.stack.insert(0, self::core::Hop::new(node, port, 0, batch));
        match self.core.visits {
            None => exec::drain::<false>(&mut self.slots, &mut self.core),
            Some(_) => exec::drain::<true>(&mut self.slots, &mut self.core),
        }
        self.after();
    }

    /// One round: the inbox, due timers, one task.
    pub(crate) fn turn(&mut self) -> Turn {
        self.core.now = self.clock.now();
        let mut ran = self.read_mail();
        if self.is_calling() {
            return Turn::Calls;
        }
        // Whoever sets a timer for this very moment waits for the next turn.
        for _ in 0..self.slots.len() {
            let Some(me) = self.core.timers.pop(self.core.now) else { break };
            self.billed(me, Why::Timer, |worker| {
                exec::wake(&mut worker.slots, &mut worker.core, me);
            });
            ran = true;
            if self.is_calling() {
                self.after();
                return Turn::Calls;
            }
        }
        self.tasks.wake_due(self.core.now);
        if let Some(task) = self.tasks.next_ready() {
            match self.meter {
                None => self.run::<false>(task),
                Some(_) => self.run_billed(task),
            }
            ran = true;
        }
        self.after();
        match ran {
            true if self.is_calling() => Turn::Calls,
            true => Turn::Ran,
            false => Turn::Idle(earlier(self.core.timers.next(), self.tasks.next_time())),
        }
    }

    fn run<const TIMED: bool>(&mut self, task: usize) {
        self.core.retry = None;
        self.core.progress = 0;
        self.core.pulls = 0;
        let job = self.tasks.job(task);
        let asked = match self.slots[job.element()].single {
            false => self.work::<TIMED>(job),
            true => self.work_singly::<TIMED>(job),
        };
        let (retry, moved) = (self.core.retry, self.core.progress > 0);
        self.tasks.ran(task, asked, retry, moved, &self.shared[self.index], &mut self.mailbox);
    }

    /// Runs a task for one packet.
    #[cold]
    fn work_singly<const TIMED: bool>(&mut self, job: Job) -> Asked {
        let burst = std::mem::replace(&mut self.core.burst, 1);
        self.core.most = 1;
        let asked = self.work::<TIMED>(job);
        (self.core.burst, self.core.most) = (burst, usize::MAX);
        asked
    }

    /// Runs a task for a burst.
    #[inline]
    fn work<const TIMED: bool>(&mut self, job: Job) -> Asked {
        match job {
            Job::Ask(me) => {
                if node::at(&self.slots, me).is_some_and(|n| n.active()) {
                    let n = self.core.burst;
                    exec::ask_and_push::<TIMED>(&mut self.slots, &mut self.core, me, n)
                } else {
                    Asked::Done
                }
            }
            Job::Drain { node, input } => self.pull_and_push::<TIMED>(node, input),
            Job::Empty(me) => exec::take_and_push::<TIMED>(&mut self.slots, &mut self.core, me),
        }
    }

    /// The task of a sink in pull context: pulls a burst and hands it over.
    fn pull_and_push<const TIMED: bool>(&mut self, node: usize, input: usize) -> Asked {
        if !node::at(&self.slots, node).is_some_and(|n| n.pulls()) {
            return Asked::Done;
        }
        let mut batch = Batch::new();
        let n = self.core.burst;
        let before = self.core.ledger[node].input;
        exec::pull_input::<TIMED>(&mut self.slots, &mut self.core, node, input, n, &mut batch);
        self.core.ledger[node].input = before; // the push counts them
        let got = batch.len();
        if got > 0 {
            self.core.stack.insert(0, self::core::Hop::new(node, input, 0, batch));
        }
        if !self.core.pulled.is_empty() {
            calls::stack_pulled(&mut self.core);
        }
        exec::drain::<TIMED>(&mut self.slots, &mut self.core);
        if got > 0 { Asked::Again } else { Asked::Empty }
    }

    /// After every call into elements: wake-ups, stop requests, lines.
    fn after(&mut self) {
        for i in 0..self.core.woken.len() {
            let to = self.core.woken[i];
            if to.worker == self.index {
                self.tasks.wake(to.task);
            } else {
                self.shared[to.worker].wake_task(to.task);
            }
        }
        self.core.woken.clear();
        if !self.core.chatter.is_empty() {
            self.console.chatter(&self.core.chatter);
            self.core.chatter.clear();
        }
        // The driver is gone only when everything is being torn down.
        for _ in 0..std::mem::take(&mut self.core.stops) {
            _ = self.stop_line.send(Notice::StopRequested);
        }
    }

    /// Does what others ask, and takes note of what they woke.
    pub(crate) fn read_mail(&mut self) -> bool {
        if !self.shared[self.index].has_mail() {
            return false;
        }
        let mut ran = false;
        let shared = self.shared.clone();
        shared[self.index].woken(|task| {
            self.tasks.wake(task);
            ran = true;
        });
        while let Some(errand) = self.mailbox.next() {
            errand(self);
            ran = true;
        }
        ran
    }

    /// Lets element `me` emit what a handler write was about.
    pub(crate) fn wake(&mut self, me: usize) {
        self.core.now = self.clock.now();
        exec::wake(&mut self.slots, &mut self.core, me);
        self.after();
    }

    /// Gives element `me` a changed configuration.
    pub(crate) fn install(&mut self, me: usize, config: Rewritten) {
        if let Some(node) = node::at_mut(&mut self.slots, me) {
            let thrown = node.install(config);
            self.core.count_drops(me, THROWN, thrown);
        }
        self.revive(me);
    }

    /// Lets packets come one at a time where `single` says so, by element.
    pub(crate) fn send_singly(&mut self, single: &[bool]) {
        for (slot, &is_single) in self.slots.iter_mut().zip(single) {
            slot.single = is_single;
            slot.straight = slot.straight.filter(|&to| !(is_single || single[to]));
        }
    }

    /// Puts the tasks of element `me`, and those that pull through it, back
    /// to work after a handler write.
    pub(crate) fn revive(&mut self, me: usize) {
        self.tasks.revive(me);
        let slot = &self.slots[me];
        self.core.woken.extend_from_slice(&slot.pullers);
        self.core.woken.extend_from_slice(&slot.feeders);
        self.after();
    }
}

/// The earlier of two times, where `None` is never.
pub(crate) fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
