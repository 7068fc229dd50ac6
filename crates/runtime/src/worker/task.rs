//! Tasks of one worker, in Click's stride order.
//!
//! Each ready task has a pass; the one with the lowest runs next and its pass
//! grows by its stride, so that a task gets turns in proportion to its
//! tickets (Waldspurger's stride scheduling, as in Click).

use super::{Inbox, WorkerHandle};
use crate::graph::task::TaskKind;
use castanet_element::element::NextRun;
use castanet_element::exec::Timers;
use castanet_element::time::Time;
use std::collections::VecDeque;

/// State of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TaskState {
    /// In the queue.
    Ready,
    /// In the queue for a last run before it rests.
    LastLook,
    /// Resting until a wake-up, or until a time if one was set.
    Waiting,
    /// Resting until a time; wake-ups have no effect.
    Sleeping,
    /// Ended, until a handler write revives it.
    Done,
    /// On another worker.
    Away,
}

// Whole pairs of cache lines: no two workers may share one.
#[repr(align(128))]
struct Task {
    kind: TaskKind,
    stride: u64,
    pass: u64,
    tickets: u32,
    state: TaskState,
    /// The account that pays for it: the number of its queue.
    account: usize,
}

/// A task that moves to another worker.
pub(crate) struct MigratedTask {
    kind: TaskKind,
    tickets: u32,
    state: TaskState,
    until: Option<Time>,
}

/// Default tickets, as in Click.
const DEFAULT_TICKETS: u32 = 1024;

/// Stride of a task: how far a run takes it back in the queue.
fn stride(tickets: u32) -> u64 {
    castanet_kit::stride::stride(tickets).map_or(NEVER, u64::from)
}

impl Task {
    fn set_tickets(&mut self, tickets: u32) {
        self.tickets = tickets;
        self.stride = stride(tickets);
    }
}

/// Capacity of the queue of few tasks: several cache lines, so that one entry that is written at
/// each turn does not share its line with the data of another worker.
const QUEUE_CAPACITY: usize = 64;

/// The stride of a task without tickets, which never runs.
const NEVER: u64 = u64::MAX;

/// The tasks of one worker.
pub(crate) struct Tasks {
    tasks: Vec<Task>,
    /// By account.
    queues: Vec<ReadyQueue>,
    timers: Timers,
}

/// Ready tasks of one account.
struct ReadyQueue {
    /// By pass, the next one in front. A task that has just run mostly goes to the end.
    tasks: VecDeque<(u64, usize)>,
    /// The pass of the task that ran last.
    pass: u64,
}

impl ReadyQueue {
    /// Queues a task by its pass, behind those of the same pass.
    #[inline]
    fn put(&mut self, place: (u64, usize)) {
        match self.tasks.back() {
            Some(last) if last.0 > place.0 => self.insert(place),
            _ => self.tasks.push_back(place),
        }
    }

    /// Queues a task before others.
    #[inline(never)]
    fn insert(&mut self, place: (u64, usize)) {
        let at = self.tasks.partition_point(|other| other.0 <= place.0);
        self.tasks.insert(at, place);
    }
}

impl Tasks {
    /// Tasks for `kinds`, and places for tasks of other workers that may come (`away`); `turns` is
    /// the share of turns of an element's tasks, where 1 is the default, and `account` the account
    /// that pays for them, of so many `accounts`.
    pub(crate) fn new(
        kinds: &[TaskKind],
        away: &[TaskKind],
        turns: impl Fn(usize) -> f64,
        account: impl Fn(usize) -> usize,
        accounts: usize,
    ) -> Tasks {
        let new = |&kind: &TaskKind, away: bool| {
            let tickets = (f64::from(DEFAULT_TICKETS) * turns(kind.element())).round() as u32;
            let stride = stride(tickets);
            let state = match stride {
                _ if away => TaskState::Away,
                NEVER => TaskState::Done,
                _ => TaskState::Ready,
            };
            Task { kind, stride, pass: 0, tickets, state, account: account(kind.element()) }
        };
        let here = kinds.iter().map(|kind| new(kind, false));
        let tasks: Vec<Task> = here.chain(away.iter().map(|kind| new(kind, true))).collect();
        let queue = |account| {
            let ready =
                |(_, it): &(usize, &Task)| it.state == TaskState::Ready && it.account == account;
            let mut queue = VecDeque::with_capacity(tasks.len().max(QUEUE_CAPACITY));
            queue.extend(tasks.iter().enumerate().filter(ready).map(|(task, _)| (0, task)));
            ReadyQueue { tasks: queue, pass: 0 }
        };
        let queues = (0..accounts.max(1)).map(queue).collect();
        let timers = Timers::new(tasks.len());
        Tasks { tasks, queues, timers }
    }

    pub(crate) fn kind(&self, task: usize) -> TaskKind {
        self.tasks[task].kind
    }

    /// Whether a task of an element is ready to run.
    pub(crate) fn is_ready(&self, element: usize) -> bool {
        let mut ready = self.queues.iter().flat_map(|queue| &queue.tasks);
        ready.any(|&(_, task)| self.tasks[task].kind.element() == element)
    }

    /// The tasks of an element.
    pub(crate) fn of(&self, element: usize) -> impl Iterator<Item = usize> {
        let tasks = self.tasks.iter().enumerate();
        tasks.filter(move |(_, it)| it.kind.element() == element).map(|(task, _)| task)
    }

    /// The tickets of an element's tasks.
    pub(crate) fn tickets(&self, element: usize) -> Option<u32> {
        Some(self.tasks.iter().find(|task| task.kind.element() == element)?.tickets)
    }

    /// Sets the tickets of an element's tasks; tasks that had none become ready.
    pub(crate) fn set_tickets(&mut self, element: usize, tickets: u32) {
        for task in 0..self.tasks.len() {
            let it = &mut self.tasks[task];
            if it.kind.element() == element {
                let begins = it.stride == NEVER && it.state != TaskState::Away;
                it.set_tickets(tickets);
                if begins {
                    self.enqueue(task);
                }
            }
        }
    }

    /// How many tasks are ready to run.
    pub(crate) fn ready(&self) -> usize {
        self.queues.iter().map(|queue| queue.tasks.len()).sum()
    }

    /// Whether a task of an account is ready to run.
    #[inline]
    pub(crate) fn has_ready(&self, account: usize) -> bool {
        !self.queues[account].tasks.is_empty()
    }

    /// The next task of an account; it is out of the queue until [`Tasks::ran`].
    #[inline]
    pub(crate) fn next_ready(&mut self, account: usize) -> Option<usize> {
        let queue = &mut self.queues[account];
        let (pass, task) = queue.tasks.pop_front()?;
        queue.pass = pass;
        Some(task)
    }

    /// The time of the first sleeping task.
    pub(crate) fn next_time(&mut self) -> Option<Time> {
        self.timers.earliest()
    }

    /// Wakes the tasks that are due.
    pub(crate) fn wake_due(&mut self, now: Time) {
        while let Some(task) = self.timers.pop(now) {
            if matches!(self.tasks[task].state, TaskState::Waiting | TaskState::Sleeping) {
                self.enqueue(task);
            }
        }
    }

    /// Queues a task that waits for packets, room or a descriptor.
    pub(crate) fn wake(&mut self, task: usize) {
        match self.tasks[task].state {
            TaskState::Waiting => self.enqueue(task),
            TaskState::LastLook => self.tasks[task].state = TaskState::Ready,
            TaskState::Ready | TaskState::Sleeping | TaskState::Done | TaskState::Away => {}
        }
    }

    /// Queues the tasks of an element, ended or not.
    pub(crate) fn revive(&mut self, element: usize) {
        for task in 0..self.tasks.len() {
            let it = &self.tasks[task];
            let rests =
                matches!(it.state, TaskState::Waiting | TaskState::Sleeping | TaskState::Done);
            if it.kind.element() == element && rests {
                self.enqueue(task);
            }
        }
    }

    /// Takes out the tasks of an element, to go to another worker; calls `left` with each.
    pub(crate) fn take_out(
        &mut self,
        element: usize,
        mut left: impl FnMut(usize),
    ) -> Vec<MigratedTask> {
        let mut carried = Vec::new();
        for (task, it) in self.tasks.iter_mut().enumerate() {
            if it.kind.element() == element && it.state != TaskState::Away {
                let state = std::mem::replace(&mut it.state, TaskState::Away);
                let until = self.timers.take(task);
                carried.push(MigratedTask { kind: it.kind, tickets: it.tickets, state, until });
                left(task);
            }
        }
        let tasks = &self.tasks;
        for queue in &mut self.queues {
            queue.tasks.retain(|&(_, task)| tasks[task].state != TaskState::Away);
        }
        carried
    }

    /// Takes in tasks of another worker. Tasks that wait for packets or a descriptor become ready,
    /// for no other worker knows here yet that they wait.
    pub(crate) fn take_in(&mut self, carried: Vec<MigratedTask>) {
        for it in carried {
            let Some(task) = self.tasks.iter().position(|task| task.kind == it.kind) else {
                continue;
            };
            self.tasks[task].set_tickets(it.tickets);
            match (it.state, it.until) {
                (TaskState::Done, _) => self.tasks[task].state = TaskState::Done,
                (TaskState::Sleeping, Some(time)) => {
                    self.tasks[task].state = TaskState::Sleeping;
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
        it.state = TaskState::Ready;
        let queue = &mut self.queues[it.account];
        // Behind those that are ready, as in Click.
        it.pass = it.pass.max(queue.pass + it.stride);
        queue.put((it.pass, task));
    }

    /// Has a ready task stand behind those of the same pass.
    pub(crate) fn put_behind(&mut self, task: usize) {
        let Some(it) = self.tasks.get(task) else { return };
        let (place, queue) = ((it.pass, task), &mut self.queues[it.account]);
        if let Some(at) = queue.tasks.iter().position(|other| *other == place) {
            queue.tasks.remove(at);
            queue.put(place);
        }
    }

    /// Decides on the next run of a task that has just run.
    #[inline]
    pub(crate) fn ran(
        &mut self,
        task: usize,
        asked: NextRun,
        retry: Option<Time>,
        moved: bool,
        shared: &WorkerHandle,
        inbox: &mut Inbox,
    ) {
        let last_look = self.tasks[task].state == TaskState::LastLook;
        self.tasks[task].state = TaskState::Ready;
        match asked {
            NextRun::Again | NextRun::SameTurn | NextRun::More => self.again(task),
            NextRun::At(time) => self.rest(task, TaskState::Sleeping, Some(time)),
            NextRun::Done => self.rest(task, TaskState::Done, None),
            NextRun::Readable(fd) => match inbox.watch(task, fd) {
                Ok(()) => self.rest(task, TaskState::Waiting, None),
                // A descriptor that cannot be watched (a plain file) is polled.
                Err(_) => self.again(task),
            },
            NextRun::Empty if moved => self.again(task),
            NextRun::Empty if last_look && shared.still_waits(task) => {
                self.rest(task, TaskState::Waiting, retry);
            }
            NextRun::Empty => {
                // The last run sees packets that were put down before this flag was set; a worker
                // that puts packets down later sees the flag and wakes the task.
                shared.wait(task);
                self.again(task);
                self.tasks[task].state = TaskState::LastLook;
            }
        }
    }

    /// Notes that a task has run, and rests until it is woken.
    pub(crate) fn wait(&mut self, task: usize) {
        self.rest(task, TaskState::Waiting, None);
    }

    #[inline]
    fn again(&mut self, task: usize) {
        let it = &mut self.tasks[task];
        let queue = &mut self.queues[it.account];
        it.pass = it.pass.max(queue.pass) + it.stride;
        queue.put((it.pass, task));
    }

    fn rest(&mut self, task: usize, state: TaskState, until: Option<Time>) {
        let it = &mut self.tasks[task];
        it.state = state;
        it.pass = it.pass.max(self.queues[it.account].pass) + it.stride;
        if let Some(time) = until {
            self.timers.set(task, time);
        }
    }
}
