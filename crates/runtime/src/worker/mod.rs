//! One worker: its elements, its tasks, its timers and its inbox.
//!
//! Handlers go to the state, never the state to handlers: a worker runs the commands of its inbox
//! between two bursts, so a handler has `&mut` to its node, and no element needs a lock, an atomic
//! or `unsafe`.

use crate::console::Console;
use crate::graph::assign::accounts::OWN;
use crate::graph::task::TaskKind;
use crate::worker::slot::{PendingBatch, WorkerGraph};
use castanet_element::exec::{ChannelLine, ExecState, RunKind};

mod accounts;
mod bypass;
pub(crate) mod calls;
pub(crate) mod chain;
pub mod driver;
pub(crate) mod inbox;
mod inspect;
mod meter;
mod migration;
mod peers;
mod sampler;
pub mod slot;
mod state_transfer;
mod task;
mod thread;
pub(crate) mod transfer;
pub(crate) mod ways;

pub use accounts::AccountReport;
pub(crate) use accounts::Accounts;
pub(crate) use inbox::{Inbox, WorkerHandle};
pub(crate) use meter::TaskMeter;
pub(crate) use sampler::Sampler;
pub(crate) use state_transfer::{ExportPlace, ImportChange, STATE_PART};
pub use state_transfer::{StateChange, StatePlace, StatePosition};
pub(crate) use task::Tasks;
pub(crate) use thread::run as run_thread;

use crate::worker::driver::DriverEvent;
use castanet_element::cx::Cx;
use castanet_element::element::NextRun;
use castanet_element::error::ArgError;
use castanet_element::fate::DISCARDED;
use castanet_element::node::{AnyConfig, RoleNode};
use castanet_element::time::{Clock, Time};
use castanet_packet::{Batch, MAX_BURST};
use std::sync::Arc;

/// Outcome of a turn of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TurnOutcome {
    /// It ran a command, a timer or a task.
    Ran,
    /// There is nothing to do before this time, or before a wake-up.
    Idle(Option<Time>),
    /// Packets wait for a handler call.
    Calls,
}

/// One worker.
pub struct Worker {
    pub(crate) index: usize,
    /// Its elements, and the batches in transfer between them.
    pub(crate) graph: WorkerGraph,
    pub(crate) exec: ExecState,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Arc<Clock>,
    pub(crate) console: Arc<dyn Console>,
    pub(crate) shared: Arc<Vec<WorkerHandle>>,
    pub(crate) inbox: Inbox,
    /// Times of tasks, while they are measured.
    pub(crate) meter: Option<TaskMeter>,
    /// The task whose packets wait for a call to be made.
    pub(crate) calling_task: Option<usize>,
    /// Measures some of the tasks, while somebody looks at the result.
    pub(crate) sampler: Option<Box<Sampler>>,
    /// Accounts of its time, where the configuration has some.
    pub(crate) accounts: Option<Box<Accounts>>,
    /// Whether it runs commands only, because a program takes a step.
    pub(crate) is_paused: bool,
    /// Whether packets have an order: nothing runs between a stop request and the driver's decision.
    pub(crate) in_order: bool,
    /// Whether it runs commands only, until the driver has decided about a stop request.
    pub(crate) awaits_decision: bool,
    /// Sends stop requests and calls of elements to the driver.
    pub(crate) driver: std::sync::mpsc::Sender<DriverEvent>,
}

impl Worker {
    /// Initialises element `me`.
    pub(crate) fn begin(&mut self, me: usize) -> Result<(), ArgError> {
        self.exec.now = self.clock.peek();
        let Some(node) = slot::at_mut(&mut self.graph.slots, me) else { return Ok(()) };
        let done = node.init(&mut Cx { exec: &mut self.exec, me, peers: None });
        self.after();
        done
    }

    /// Starts element `me`. Batches that it emits wait for [`Worker::run_emitted`].
    pub(crate) fn start(&mut self, me: usize) -> Result<(), ArgError> {
        self.exec.now = self.clock.peek();
        let mut done = Ok(());
        transfer::act(&mut self.graph, &mut self.exec, me, |node, cx| done = node.start(cx));
        done
    }

    /// Pushes the batches that elements emitted while they started.
    pub(crate) fn run_emitted(&mut self) {
        transfer::drain_all(&mut self.graph, &mut self.exec);
        self.after();
    }

    /// Tells element `me` that it has taken over state. Batches that it emits wait for
    /// [`Worker::run_emitted`].
    pub(crate) fn resume(&mut self, me: usize) {
        self.exec.now = self.clock.peek();
        transfer::act(&mut self.graph, &mut self.exec, me, |node, cx| node.after_take_state(cx));
    }

    /// Has elements exchange their devices, and runs their tasks again.
    pub(crate) fn exchange_devices(&mut self, elements: &[usize]) {
        self.exec.now = self.clock.peek();
        for &me in elements {
            // Before the element closes the descriptor for which a task waits.
            self.tasks.of(me).for_each(|task| self.inbox.forget(task));
            transfer::call(&mut self.graph, &mut self.exec, me, |node, cx| {
                node.exchange_device(cx);
            });
            self.tasks.revive(me);
        }
        self.after();
    }

    /// Cleans up the elements that were initialised on this worker, then pushes the batches that
    /// they emit. `begun` has the workers of each element.
    pub(crate) fn end(&mut self, begun: &[Vec<usize>]) {
        self.exec.now = self.clock.peek();
        for (me, workers) in begun.iter().enumerate() {
            if workers.contains(&self.index) {
                transfer::call(&mut self.graph, &mut self.exec, me, |node, cx| node.cleanup(cx));
            }
        }
        self.after();
    }

    /// Pushes a batch into an input, as an upstream element would.
    pub fn inject(&mut self, node: usize, port: usize, batch: Batch) {
        self.exec.now = self.clock.peek();
        self.exec.pulls = 0;
        // Packets that wait for a call go on first.
        self.graph.stack.insert(0, PendingBatch::new(node, port, 0, batch));
        transfer::drain_all(&mut self.graph, &mut self.exec);
        self.after();
    }

    /// One turn: the inbox, due timers, one task.
    pub(crate) fn turn(&mut self) -> TurnOutcome {
        self.exec.now = self.clock.peek();
        self.begin_charges();
        let mut ran = self.run_commands();
        if self.is_calling() || self.is_paused || self.awaits_decision {
            return TurnOutcome::Calls;
        }
        ran |= self.run_timers();
        if self.is_calling() {
            self.after();
            return TurnOutcome::Calls;
        }
        self.tasks.wake_due(self.exec.now);
        let (ran_task, until) = self.run_next();
        self.after();
        match ran | ran_task {
            true if self.is_calling() => TurnOutcome::Calls,
            true => TurnOutcome::Ran,
            false if !self.rest() => TurnOutcome::Idle(Some(self.exec.now)),
            false => TurnOutcome::Idle(earlier(self.next_time(), until)),
        }
    }

    /// The time of the next timer, or of the next task that waits for a time.
    pub(crate) fn next_time(&mut self) -> Option<Time> {
        earlier(self.exec.timers.earliest(), self.tasks.next_time())
    }

    /// Runs the timers that are due, down to a call; returns whether there were any.
    fn run_timers(&mut self) -> bool {
        let (mut ran, mut timer_ticks) = (false, 0);
        // A timer that is set for this very moment waits for the next turn.
        for _ in 0..self.graph.slots.len() {
            let Some(me) = self.exec.timers.pop(self.exec.now) else { break };
            if self.postpones(me) {
                continue;
            }
            let payment = self.payment(me);
            let account = self.account_of(me);
            self.bound_run(account);
            self.charged(me, RunKind::Timer, |worker| {
                transfer::wake(&mut worker.graph, &mut worker.exec, me);
            });
            self.set_remainder_aside(account);
            drop(payment);
            let is_over = self.charge_timer(me, &mut timer_ticks);
            ran = true;
            if is_over || self.is_calling() {
                break;
            }
        }
        ran
    }

    /// Runs the timers that are due before any task has another turn.
    pub(crate) fn run_due(&mut self) {
        self.exec.now = self.clock.peek();
        if !self.is_calling() {
            self.run_timers();
            self.after();
        }
    }

    /// Runs the next task; returns whether there was one, and the time at which one may run that has
    /// to wait.
    #[inline]
    fn run_next(&mut self) -> (bool, Option<Time>) {
        if self.accounts.is_some() {
            return self.run_accounts();
        }
        let Some(task) = self.tasks.next_ready(OWN) else { return (false, None) };
        match (&self.meter, &self.sampler) {
            (None, None) => self.run::<false>(task),
            _ => self.run_measured(task),
        }
        (true, None)
    }

    fn run<const TIMED: bool>(&mut self, task: usize) {
        self.exec.retry = None;
        (self.graph.progress, self.graph.is_drained) = (0, false);
        self.exec.pulls = 0;
        let kind = self.tasks.kind(task);
        let is_single = self.graph.slots[kind.element()].single;
        // Of packets that go one at a time, a turn has as many as the arguments say.
        let mut left = if is_single { self.packets_of_arguments(kind.element()) } else { 1 };
        let asked = loop {
            let asked = match is_single {
                false => self.work::<TIMED>(kind),
                true => self.work_singly::<TIMED>(kind),
            };
            left = left.saturating_sub(1);
            let goes_on = match asked {
                NextRun::SameTurn => true,
                NextRun::Again | NextRun::More => left > 0,
                _ => false,
            };
            if !goes_on || self.graph.is_cut || self.is_calling() {
                break asked;
            }
        };
        if asked == NextRun::More && self.graph.is_drained && self.is_drained(kind) {
            // More packets wake it.
            return self.tasks.wait(task);
        }
        let (retry, moved) = (self.exec.retry, self.graph.progress > 0);
        // Tasks that it has woken stand before it in the queue, as in Click.
        self.wake_tasks();
        self.tasks.ran(task, asked, retry, moved, &self.shared[self.index], &mut self.inbox);
        if self.is_calling() {
            self.calling_task = Some(task);
        }
    }

    /// Whether all packets of a task come from the store that it has pulled last.
    fn is_drained(&self, kind: TaskKind) -> bool {
        matches!(kind, TaskKind::Store(_))
            || transfer::has_nothing_else(&self.graph, kind.element())
    }

    /// Runs a task for one packet.
    #[cold]
    fn work_singly<const TIMED: bool>(&mut self, kind: TaskKind) -> NextRun {
        let burst = std::mem::replace(&mut self.exec.burst, 1);
        self.graph.most = 1;
        let asked = self.work::<TIMED>(kind);
        (self.exec.burst, self.graph.most) = (burst, usize::MAX);
        asked
    }

    /// Runs a task for a burst.
    #[inline]
    fn work<const TIMED: bool>(&mut self, kind: TaskKind) -> NextRun {
        match kind {
            TaskKind::Source(me) => {
                if self.graph.slots[me].node.as_ref().is_some_and(RoleNode::is_active) {
                    let n = self.packets_a_turn(me);
                    transfer::run_source::<TIMED>(&mut self.graph, &mut self.exec, me, n)
                } else {
                    NextRun::Done
                }
            }
            TaskKind::Sink { node, input } => self.run_sink::<TIMED>(node, input),
            TaskKind::Store(me) => {
                transfer::run_store::<TIMED>(&mut self.graph, &mut self.exec, me)
            }
        }
    }

    /// Packets that a task of an element handles in a turn, unless its arguments say otherwise.
    #[inline]
    fn packets_a_turn(&self, element: usize) -> usize {
        match self.graph.slots[element].one_a_turn {
            false => self.exec.burst,
            true => self.packets_of_arguments(element).min(self.exec.burst),
        }
    }

    /// Packets that an element's arguments ask for in a turn of Click, at most a burst.
    fn packets_of_arguments(&self, element: usize) -> usize {
        let node = self.graph.slots[element].node.as_ref();
        node.map_or(1, |node| node.packets_a_turn().clamp(1, MAX_BURST))
    }

    /// The task of a sink in pull context: pulls a burst and hands it over.
    fn run_sink<const TIMED: bool>(&mut self, node: usize, input: usize) -> NextRun {
        if !slot::through_at(&self.graph.slots, node).is_some_and(|it| it.is_pulling()) {
            return NextRun::Done;
        }
        let mut batch = Batch::new();
        let mut n = self.packets_a_turn(node);
        if !self.graph.slots[node].one_a_turn {
            n = self.exec.long_burst(n);
        }
        let before = self.exec.counters[node].input;
        transfer::pull_input::<TIMED>(&mut self.graph, &mut self.exec, node, input, n, &mut batch);
        self.exec.counters[node].input = before; // the push counts them
        let got = batch.len();
        if got > 0 {
            self.graph.stack.insert(0, PendingBatch::new(node, input, 0, batch));
        }
        if !self.graph.pulled.is_empty() {
            calls::stack_pulled(&mut self.graph);
        }
        transfer::drain::<TIMED>(&mut self.graph, &mut self.exec);
        if got > 0 { NextRun::More } else { NextRun::Empty }
    }

    /// Sends on what elements have left after a call: wake-ups, stop requests, lines.
    fn after(&mut self) {
        self.wake_tasks();
        if !self.exec.chatter.is_empty() || !self.exec.channel_lines.is_empty() {
            self.send_lines();
        }
        if !self.exec.new_panics.is_empty() {
            self.send_panics();
        }
        // The driver is gone only while the router is torn down.
        let stops = std::mem::take(&mut self.exec.stops);
        self.awaits_decision |= self.in_order && stops > 0;
        for _ in 0..stops {
            _ = self.driver.send(DriverEvent::StopRequested);
        }
    }

    /// Sends the console the lines of all channels, in the order in which elements wrote them.
    #[cold]
    fn send_lines(&mut self) {
        let mut sent = 0;
        for ChannelLine { channel, line, after } in self.exec.channel_lines.drain(..) {
            if after > sent {
                self.console.chatter(&self.exec.chatter[sent..after]);
                sent = after;
            }
            self.console.chatter_on(&channel, &line);
        }
        if self.exec.chatter.len() > sent {
            self.console.chatter(&self.exec.chatter[sent..]);
        }
        self.exec.chatter.clear();
    }

    /// Wakes tasks for which packets or room are there.
    #[inline]
    fn wake_tasks(&mut self) {
        for i in 0..self.graph.woken.len() {
            let to = self.graph.woken[i];
            if to.worker == self.index {
                self.tasks.wake(to.task);
            } else {
                self.shared[to.worker].wake_task(to.task);
            }
        }
        self.graph.woken.clear();
    }

    /// Sends the driver the names of the elements that panicked.
    #[cold]
    fn send_panics(&mut self) {
        let labels = self.exec.labels.clone();
        let name = |(me, count): (usize, u64)| {
            let (name, _) = labels.get(me)?.split_once(" :: ")?;
            Some((name.to_owned(), count))
        };
        let named = self.exec.new_panics.drain(..).filter_map(name).collect();
        _ = self.driver.send(DriverEvent::Panicked(named));
    }

    /// Runs the commands, and wakes the tasks that other workers have woken; returns whether there
    /// were any.
    pub(crate) fn run_commands(&mut self) -> bool {
        if !self.shared[self.index].take_pending() {
            return false;
        }
        let mut ran = false;
        let shared = self.shared.clone();
        shared[self.index].woken(|task| {
            self.tasks.wake(task);
            ran = true;
        });
        while let Some(command) = self.inbox.next() {
            command(self);
            self.charge_command();
            ran = true;
        }
        ran
    }

    /// Runs the timer of element `me`, to emit packets after a handler write.
    pub(crate) fn wake(&mut self, me: usize) {
        self.exec.now = self.clock.peek();
        transfer::wake(&mut self.graph, &mut self.exec, me);
        self.after();
    }

    /// Gives element `me` a changed configuration.
    pub(crate) fn install(&mut self, me: usize, config: AnyConfig) {
        if let Some(node) = slot::at_mut(&mut self.graph.slots, me) {
            let thrown = node.install(config);
            self.exec.count_drops(me, DISCARDED, thrown);
        }
        self.revive(me);
    }

    /// Has packets come one at a time where `single` says so, by element.
    pub(crate) fn send_singly(&mut self, single: &[bool]) {
        for (slot, &is_single) in self.graph.slots.iter_mut().zip(single) {
            slot.single = is_single;
            slot.bypass.take_if(|ways| is_single || !ways.retain(|it| !single[it]));
        }
    }

    /// Wakes the tasks of element `me`, and those that pull through it if there is something to pull,
    /// after a handler write.
    pub(crate) fn revive(&mut self, me: usize) {
        self.tasks.revive(me);
        let slot = &self.graph.slots[me];
        if (0..slot.outputs.len()).any(|port| self.graph.may_bring(me, port)) {
            self.graph.woken.extend_from_slice(&slot.pullers);
        }
        self.graph.woken.extend_from_slice(&slot.feeders);
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
