//! Tasks of one worker, in Click's stride order.
//!
//! Each ready task has a pass; the one with the lowest runs next and its pass
//! grows by its stride, so that a task gets turns in proportion to its
//! tickets (Waldspurger's stride scheduling, as in Click).

use super::core::Timers;
use super::{Mailbox, Shared};
use crate::element::Asked;
use crate::time::Time;
use std::collections::VecDeque;

/// What a task does when its turn comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Job {
    /// Asks a source and pushes what it emits.
    Ask(usize),
    /// Pulls an input of a sink and hands the packets over.
    Drain {
        /// The sink.
        node: usize,
        /// Its pull input.
        input: usize,
    },
    /// Takes packets out of a store whose output pushes.
    Empty(usize),
}

impl Job {
    /// What it does with that element, in a word.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Job::Ask(_) => "asks",
            Job::Drain { .. } => "pulls for",
            Job::Empty(_) => "empties",
        }
    }

    /// The element it belongs to.
    pub(crate) fn element(self) -> usize {
        match self {
            Job::Ask(node) | Job::Drain { node, .. } | Job::Empty(node) => node,
        }
    }
}

/// Where a task stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// In the queue.
    Ready,
    /// In the queue for a last look before it rests.
    LastLook,
    /// Resting until somebody wakes it, or a time if one was set.
    Waiting,
    /// Resting until a time; packets do not wake it.
    Sleeping,
    /// Ended, unless a handler revives it.
    Done,
    /// On another worker.
    Away,
}

struct Task {
    job: Job,
    stride: u64,
    pass: u64,
    tickets: u32,
    state: State,
}

/// A task on its way to another worker.
pub(crate) struct Carried {
    job: Job,
    tickets: u32,
    state: State,
    until: Option<Time>,
}

/// The stride of a task with one ticket.
const STRIDE1: u64 = 1 << 16;
/// The tickets of every task unless said otherwise, as in Click.
const DEFAULT_TICKETS: u32 = 1024;

/// How far a run takes a task back in the queue.
fn stride(tickets: u32) -> u64 {
    STRIDE1.checked_div(u64::from(tickets).min(STRIDE1)).unwrap_or(NEVER)
}

impl Task {
    fn set_tickets(&mut self, tickets: u32) {
        self.tickets = tickets;
        self.stride = stride(tickets);
    }
}

/// The stride of a task without tickets, which never runs.
const NEVER: u64 = u64::MAX;

/// The tasks of one worker.
pub(crate) struct Tasks {
    tasks: Vec<Task>,
    /// The ready ones by pass, the next in front. Who has just run mostly goes
    /// to the end.
    queue: VecDeque<(u64, usize)>,
    timers: Timers,
    pass: u64,
}

impl Tasks {
    /// Tasks for `jobs`, and places for those of other workers that may come;
    /// `turns` says by element how many turns its tasks get where others get one.
    pub(crate) fn new(jobs: &[Job], away: &[Job], turns: impl Fn(usize) -> f64) -> Tasks {
        let new = |&job: &Job, away: bool| {
            let tickets = (f64::from(DEFAULT_TICKETS) * turns(job.element())).round() as u32;
            let stride = stride(tickets);
            let state = match stride {
                _ if away => State::Away,
                NEVER => State::Done,
                _ => State::Ready,
            };
            Task { job, stride, pass: 0, tickets, state }
        };
        let here = jobs.iter().map(|job| new(job, false));
        let tasks: Vec<Task> = here.chain(away.iter().map(|job| new(job, true))).collect();
        let ready = |task: &usize| tasks[*task].state == State::Ready;
        let queue = (0..tasks.len()).filter(ready).map(|task| (0, task)).collect();
        let timers = Timers::new(tasks.len());
        Tasks { tasks, queue, timers, pass: 0 }
    }

    pub(crate) fn job(&self, task: usize) -> Job {
        self.tasks[task].job
    }

    /// Whether a task of an element is ready to run.
    pub(crate) fn is_ready(&self, element: usize) -> bool {
        self.queue.iter().any(|&(_, task)| self.tasks[task].job.element() == element)
    }

    /// The tickets of an element's tasks.
    pub(crate) fn tickets(&self, element: usize) -> Option<u32> {
        Some(self.tasks.iter().find(|task| task.job.element() == element)?.tickets)
    }

    /// Sets the tickets of an element's tasks; those that had none begin.
    pub(crate) fn set_tickets(&mut self, element: usize, tickets: u32) {
        for task in 0..self.tasks.len() {
            let it = &mut self.tasks[task];
            if it.job.element() == element {
                let begins = it.stride == NEVER && it.state != State::Away;
                it.set_tickets(tickets);
                if begins {
                    self.enqueue(task);
                }
            }
        }
    }

    /// How many tasks are ready to run.
    pub(crate) fn ready(&self) -> usize {
        self.queue.len()
    }

    /// The task whose turn it is; it is out of the queue until [`Tasks::ran`].
    pub(crate) fn next_ready(&mut self) -> Option<usize> {
        let (pass, task) = self.queue.pop_front()?;
        self.pass = pass;
        Some(task)
    }

    /// When the first sleeping task wants to run.
    pub(crate) fn next_time(&mut self) -> Option<Time> {
        self.timers.next()
    }

    /// Wakes the tasks whose time has come.
    pub(crate) fn wake_due(&mut self, now: Time) {
        while let Some(task) = self.timers.pop(now) {
            if matches!(self.tasks[task].state, State::Waiting | State::Sleeping) {
                self.enqueue(task);
            }
        }
    }

    /// Puts a task that waits for packets, room or a descriptor into the queue.
    pub(crate) fn wake(&mut self, task: usize) {
        match self.tasks[task].state {
            State::Waiting => self.enqueue(task),
            State::LastLook => self.tasks[task].state = State::Ready,
            State::Ready | State::Sleeping | State::Done | State::Away => {}
        }
    }

    /// Puts the tasks of an element into the queue, ended or not.
    pub(crate) fn revive(&mut self, element: usize) {
        for task in 0..self.tasks.len() {
            let it = &self.tasks[task];
            let rests = matches!(it.state, State::Waiting | State::Sleeping | State::Done);
            if it.job.element() == element && rests {
                self.enqueue(task);
            }
        }
    }

    /// Takes the tasks of an element out, to go to another worker; `left` is
    /// called for each.
    pub(crate) fn leave(&mut self, element: usize, mut left: impl FnMut(usize)) -> Vec<Carried> {
        let mut carried = Vec::new();
        for (task, it) in self.tasks.iter_mut().enumerate() {
            if it.job.element() == element && it.state != State::Away {
                let state = std::mem::replace(&mut it.state, State::Away);
                let until = self.timers.take(task);
                carried.push(Carried { job: it.job, tickets: it.tickets, state, until });
                left(task);
            }
        }
        let tasks = &self.tasks;
        self.queue.retain(|&(_, task)| tasks[task].state != State::Away);
        carried
    }

    /// Takes tasks in that come from another worker. Those that wait for
    /// packets or a descriptor look for themselves whether there are any, for
    /// nobody here knows yet that they wait.
    pub(crate) fn arrive(&mut self, carried: Vec<Carried>) {
        for it in carried {
            let Some(task) = self.tasks.iter().position(|task| task.job == it.job) else {
                continue;
            };
            self.tasks[task].set_tickets(it.tickets);
            match (it.state, it.until) {
                (State::Done, _) => self.tasks[task].state = State::Done,
                (State::Sleeping, Some(time)) => {
                    self.tasks[task].state = State::Sleeping;
                    self.timers.set(task, time);
                }
                _ => self.enqueue(task),
            }
        }
    }

    fn enqueue(&mut self, task: usize) {
        if self.tasks[task].stride == NEVER {
            return;
        }
        self.timers.cancel(task);
        let it = &mut self.tasks[task];
        it.state = State::Ready;
        it.pass = it.pass.max(self.pass);
        let place = (it.pass, task);
        self.put(place);
    }

    /// Puts a task into the queue, where its pass says.
    fn put(&mut self, place: (u64, usize)) {
        match self.queue.back() {
            Some(last) if *last > place => {
                let at = self.queue.partition_point(|other| *other < place);
                self.queue.insert(at, place);
            }
            _ => self.queue.push_back(place),
        }
    }

    /// Decides what becomes of a task that has just run.
    pub(crate) fn ran(
        &mut self,
        task: usize,
        asked: Asked,
        retry: Option<Time>,
        moved: bool,
        shared: &Shared,
        mailbox: &mut Mailbox,
    ) {
        let last_look = self.tasks[task].state == State::LastLook;
        self.tasks[task].state = State::Ready;
        match asked {
            Asked::Again => self.again(task),
            Asked::At(time) => self.rest(task, State::Sleeping, Some(time)),
            Asked::Done => self.rest(task, State::Done, None),
            Asked::Readable(fd) => match mailbox.watch(task, fd) {
                Ok(()) => self.rest(task, State::Waiting, None),
                // A descriptor that cannot be waited for (a plain file) is polled.
                Err(_) => self.again(task),
            },
            Asked::Empty if moved => self.again(task),
            Asked::Empty if last_look && shared.still_waits(task) => {
                self.rest(task, State::Waiting, retry);
            }
            Asked::Empty => {
                // Whoever put packets down before this sign went up is seen by
                // the last look; whoever does after it wakes the task.
                shared.wait(task);
                self.again(task);
                self.tasks[task].state = State::LastLook;
            }
        }
    }

    fn again(&mut self, task: usize) {
        let it = &mut self.tasks[task];
        it.pass = it.pass.max(self.pass) + it.stride;
        let place = (it.pass, task);
        self.put(place);
    }

    fn rest(&mut self, task: usize, state: State, until: Option<Time>) {
        let it = &mut self.tasks[task];
        it.state = state;
        it.pass = it.pass.max(self.pass) + it.stride;
        if let Some(time) = until {
            self.timers.set(task, time);
        }
    }
}
