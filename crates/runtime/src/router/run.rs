//! Runs a router to its end, in real or in simulated time.

use super::service::{PeriodicService, Service, ServiceSchedule, Watcher};
use super::worker_set::WorkerSet;
use super::{DriverEvent, PacketOrder, ProgramRun, Router};
use crate::console::Console;
use crate::graph::order;
use crate::worker::{TurnOutcome, Worker, earlier};
use castanet_element::control::ProgramWait;
use castanet_element::time::Time;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// Outcome of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunOutcome {
    /// The exit status that the configuration has set; 0 by default.
    pub status: i32,
    /// Whether the user ended it.
    pub interrupted: bool,
}

/// Findings when a router was dismantled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TeardownReport {
    /// Frames that did not come back to their pool: a bug of Castanet.
    pub leaked_frames: usize,
    /// Bursts lost to a panic in an element.
    pub panics: u64,
    /// Workers whose threads panicked.
    pub lost_workers: usize,
}

/// Whether a signal that no program waits for ends the router.
pub(super) fn ends(signal: i32) -> bool {
    use nix::sys::signal::Signal;
    [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM].iter().any(|&end| end as i32 == signal)
}

/// Turns of tasks after which Click looks at signals and timers.
const ROUND: usize = 128;
/// Rounds before Click looks at its timers for the first time.
const FIRST_ROUNDS: usize = 32;
/// Pause between two looks of the driver at workers that are busy, or wait for no time, while the clock
/// jumps over waits.
const BUSY_PAUSE: Duration = Duration::from_millis(1);
/// Looks at the clock before the first timer runs, in Click.
const LOOKS_AT_START: u32 = 4;
/// The longest sleep of the driver.
const LONG: Duration = Duration::from_secs(3600);

impl Router {
    /// Runs until the router is stopped. `watch` is called at its interval, for live views. Workers
    /// do not run on threads afterwards, so that handlers can still be read.
    pub fn run(&mut self, watch: Option<Watcher<'_>>) -> RunOutcome {
        match watch {
            None => self.run_with(&mut []),
            Some((every, look)) => self.run_with(&mut [&mut PeriodicService::new(every, look)]),
        }
    }

    /// The same with these services; in simulated time, they do not run.
    pub fn run_with(&mut self, services: &mut [&mut dyn Service]) -> RunOutcome {
        match self.control.clock.is_simulated() {
            true => self.run_simulated(),
            false => self.run_real(services),
        }
    }

    fn run_real(&mut self, services: &mut [&mut dyn Service]) -> RunOutcome {
        let mut interrupted = self.begin_in_order();
        if self.control.ending.is_some() && !self.is_replaced() {
            self.make_all_calls();
            return self.outcome(interrupted);
        }
        self.go_on(true);
        let mut services = ServiceSchedule::new(services, self.control.clock.peek());
        loop {
            if self.control.has_waiting_workers {
                self.decide_stops();
            }
            while self.step_programs() {}
            self.decide_stops();
            if interrupted || self.control.ending.is_some() {
                break;
            }
            let ran = services.step(self);
            let now = self.control.clock.peek();
            let until = earlier(self.next_program(), services.earliest());
            let clock = &self.control.clock;
            let sleep = match ran || clock.jumps() {
                // A service may have written handlers; one without a pause keeps no event away.
                true => Duration::ZERO,
                false => until.map_or(LONG, |t| clock.real_delay(t - now).min(LONG)),
            };
            match self.control.notices.recv_timeout(sleep) {
                Ok(notice) => interrupted |= self.heed(notice),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) if !ran => {
                    self.jump_over_waits();
                }
                Err(_) => {}
            }
        }
        self.halt();
        // Packets on their way come to their end.
        self.make_all_calls();
        self.outcome(interrupted)
    }

    /// How the run has ended.
    fn outcome(&self, interrupted: bool) -> RunOutcome {
        RunOutcome { status: self.control.ending.unwrap_or(0), interrupted }
    }

    /// Moves a clock that jumps to the next event for which a worker or a program waits, unless a worker
    /// is busy.
    fn jump_over_waits(&mut self) {
        if !self.control.clock.jumps() {
            return;
        }
        let workers = self.workers.ask_all(|worker| match worker.tasks.ready() {
            0 => Some(worker.next_time()),
            _ => None,
        });
        let workers: Option<Vec<Option<Time>>> =
            workers.into_iter().map(|time| time.ok().flatten()).collect();
        let next = workers.map(|times| times.into_iter().fold(self.next_program(), earlier));
        match next {
            Some(Some(time)) => {
                self.control.clock.jump(time);
                self.workers.ask_all(|_| ());
            }
            Some(None) | None => std::thread::sleep(BUSY_PAUSE),
        }
    }

    /// Ends the router at stop requests that no program waits for, unless a driver program still
    /// runs. Where packets have an order, those programs run first, and no other ones.
    fn decide_stops(&mut self) {
        let has_waiting_workers = std::mem::take(&mut self.control.has_waiting_workers);
        if has_waiting_workers {
            self.run_drivers();
        }
        if self.control.stops > 0 && !self.is_driven() {
            self.control.ending.get_or_insert(0);
        }
        if has_waiting_workers && self.control.ending.is_none() {
            self.workers.ask_all(|worker| worker.awaits_decision = false);
        }
    }

    /// Runs what comes before scripts, where packets have an order: the programs that drive the router, then
    /// tasks, for as long as Click does not look at its timers. Returns whether the user ends the router.
    fn begin_in_order(&mut self) -> bool {
        let mut interrupted = false;
        if self.control.order == PacketOrder::Bursts {
            return interrupted;
        }
        self.run_drivers();
        // A device belongs to the thread of its worker.
        let graph = &self.config.graph;
        if (0..graph.elements.len()).any(|it| order::is_device(graph, it)) {
            return interrupted;
        }
        for _ in 0..FIRST_ROUNDS {
            let outcome = self.round(&mut interrupted);
            self.run_signal_programs();
            if matches!(outcome, TurnOutcome::Idle(_)) || interrupted || self.is_ending() {
                return interrupted;
            }
        }
        self.run_due();
        interrupted
    }

    /// Runs up to [`ROUND`] turns of tasks, and obeys their notices, until a turn without any is idle.
    fn round(&mut self, interrupted: &mut bool) -> TurnOutcome {
        if self.control.order == PacketOrder::Bursts {
            return self.round_of_bursts(interrupted);
        }
        let mut outcome = TurnOutcome::Ran;
        for _ in 0..ROUND {
            outcome = self.settle_a_while();
            let has_notices = self.heed_notices(interrupted);
            self.decide_stops();
            let is_idle = matches!(outcome, TurnOutcome::Idle(_));
            if is_idle && has_notices {
                return TurnOutcome::Ran;
            }
            if is_idle || *interrupted || self.is_ending() {
                break;
            }
        }
        outcome
    }

    /// The round where packets have no order: it ends behind the turn after which the driver has something to do.
    fn round_of_bursts(&mut self, interrupted: &mut bool) -> TurnOutcome {
        let next_program = self.next_program();
        let turns = if self.control.stops > 0 { 1 } else { ROUND };
        for _ in 0..turns {
            let outcome = self.settle_a_while();
            match (self.heed_notices(interrupted), outcome) {
                (false, TurnOutcome::Ran) => {}
                (true, TurnOutcome::Idle(_)) => return TurnOutcome::Ran,
                _ => return outcome,
            }
            if next_program.is_some_and(|time| time <= self.control.clock.peek()) {
                break;
            }
        }
        TurnOutcome::Ran
    }

    /// Obeys the events that have come; returns whether there were any.
    fn heed_notices(&mut self, interrupted: &mut bool) -> bool {
        let mut has_notices = false;
        while let Ok(notice) = self.control.notices.try_recv() {
            *interrupted |= self.heed(notice);
            has_notices = true;
        }
        has_notices
    }

    /// Whether the router ends, or this configuration does.
    fn is_ending(&self) -> bool {
        self.control.ending.is_some() || self.is_replaced()
    }

    /// Runs the programs that drive the router, which begin before any task does.
    pub(super) fn run_drivers(&mut self) {
        while self.run_those_programs(|run| run.program.is_driver()) {}
    }

    fn run_simulated(&mut self) -> RunOutcome {
        if let Some(worker) = self.workers.idle(0) {
            // As on a worker's thread: this one runs all workers, whose frames have one pool.
            worker.exec.frames.pool.use_for_copies();
        }
        // Click looks so often before it runs the first timer.
        (0..LOOKS_AT_START).for_each(|_| self.control.clock.tick());
        let mut interrupted = self.begin_in_order();
        self.replace();
        while self.control.ending.is_none() && !interrupted {
            let next = self.round(&mut interrupted);
            let ran = self.step_programs();
            self.decide_stops();
            match next {
                TurnOutcome::Ran | TurnOutcome::Calls => {}
                TurnOutcome::Idle(_) if ran || self.control.ending.is_some() => {}
                TurnOutcome::Idle(next) => match earlier(next, self.next_program()) {
                    Some(time) => {
                        self.control.clock.jump(time);
                        self.run_due();
                    }
                    // No event will ever come.
                    None => break,
                },
            }
        }
        self.outcome(interrupted)
    }

    /// Runs the timers of elements that are due, then the programs, where they come before tasks.
    fn run_due(&mut self) {
        if self.control.order == PacketOrder::Bursts {
            return;
        }
        for index in 0..self.workers.len() {
            self.workers.idle(index).into_iter().for_each(Worker::run_due);
            self.make_calls(index);
        }
        self.step_programs();
    }

    /// Handles an event; returns whether the router is to end.
    pub(super) fn heed(&mut self, notice: DriverEvent) -> bool {
        match notice {
            DriverEvent::StopRequested => {
                self.control.stops += 1;
                self.control.has_waiting_workers = self.control.order != PacketOrder::Bursts;
            }
            DriverEvent::ProgramNotified(id) => {
                let now = self.control.clock.peek();
                let program = self.control.programs.iter_mut().find(|run| run.id == id);
                if let Some(run) = program.filter(|run| run.waits != ProgramWait::Ended) {
                    run.waits = ProgramWait::At(now);
                }
            }
            DriverEvent::ServicesNotified => self.control.wakes_services = true,
            DriverEvent::Interrupted => return true,
            DriverEvent::Signal(signal) => return !self.signalled(signal) && self.strikes(signal),
            DriverEvent::CallPending(worker) => self.make_calls(worker),
            DriverEvent::Panicked(elements) => {
                for (name, count) in elements {
                    *self.control.panics.entry(name).or_default() += count;
                }
                self.control.wakes_services = true;
            }
        }
        false
    }

    /// A signal for which no program waits: returns whether it ends the router. Other signals have
    /// their default action, unless a program that waits for them runs at the moment.
    pub(super) fn strikes(&self, signal: i32) -> bool {
        let at_work = |run: &ProgramRun| {
            run.waits != ProgramWait::Ended && run.program.signals().contains(&signal)
        };
        if !ends(signal) && !self.control.programs.iter().any(at_work) {
            (self.control.default_action)(signal);
        }
        ends(signal)
    }

    /// Calls the programs that wait for a signal; returns whether there were any.
    pub(super) fn signalled(&mut self, signal: i32) -> bool {
        let armed = std::mem::take(&mut self.control.armed);
        let (called, waiting) = armed.into_iter().partition(|&(wanted, _)| wanted == signal);
        let called: Vec<(i32, usize)> = called;
        self.control.armed = waiting;
        for &(_, element) in &called {
            let handler = format!("{}.run", self.config.graph.elements[element].name);
            if let Err(e) = self.write(&handler, "") {
                self.control.console.chatter(&format!("{handler}: {}\n", self.words(&e)));
            }
            // The next signal finds a program that has ended, or waits for it again.
            let now = self.control.clock.peek();
            let is_due = |run: &ProgramRun| {
                run.element == element && matches!(run.waits, ProgramWait::At(time) if time <= now)
            };
            if let Some(at) = self.control.programs.iter().position(is_due) {
                self.step(at);
            }
        }
        !called.is_empty()
    }

    /// Gives each worker a turn; idle only when all are. [`TurnOutcome::Calls`] if it has made calls.
    fn settle_a_while(&mut self) -> TurnOutcome {
        let mut all = TurnOutcome::Idle(None);
        for index in 0..self.workers.len() {
            let Some(worker) = self.workers.idle(index) else { continue };
            let has_task = worker.tasks.ready() > 0;
            all = match (all, worker.turn()) {
                (TurnOutcome::Idle(a), TurnOutcome::Idle(b)) => TurnOutcome::Idle(earlier(a, b)),
                (_, TurnOutcome::Calls) => {
                    self.make_calls(index);
                    TurnOutcome::Calls
                }
                (TurnOutcome::Calls, _) => TurnOutcome::Calls,
                _ => TurnOutcome::Ran,
            };
            // Click's sources look at the clock in their turns.
            if has_task {
                self.control.clock.tick();
            }
        }
        all
    }

    /// Runs idle workers and programs, without moving the clock, until nothing is left to do or
    /// `turns` turns are over; for tests and simulated time.
    pub fn settle(&mut self, turns: usize) -> Option<Time> {
        for _ in 0..turns {
            let turn = self.settle_a_while();
            let mut ran = false;
            while let Ok(notice) = self.control.notices.try_recv() {
                self.heed(notice);
                ran = true;
            }
            ran |= self.step_programs();
            if let (TurnOutcome::Idle(next), false) = (turn, ran) {
                return earlier(next, self.next_program());
            }
        }
        None
    }

    /// Moves a simulated clock by `time`, stopping at every timer on the way.
    pub fn advance(&mut self, time: Duration) {
        self.advance_within(time, 100_000, usize::MAX);
    }

    /// The same with at most so many turns at a time, and stops.
    pub fn advance_within(&mut self, time: Duration, turns: usize, stops: usize) {
        let end = self.control.clock.peek() + time;
        for _ in 0..stops {
            let Some(next) = self.settle(turns).filter(|t| *t <= end) else { break };
            self.control.clock.jump(next);
        }
        self.control.clock.jump(end);
        self.settle(turns);
    }

    /// Cleans up all elements: buffers are written out.
    pub fn end(&mut self) {
        self.end_those(|_| true);
    }

    /// Cleans up some elements.
    pub(super) fn end_those(&mut self, which: impl Fn(usize) -> bool) {
        let begun: Vec<Vec<usize>> = (0..self.config.graph.elements.len())
            .map(|it| match which(it) {
                true => self.config.assigned.begins(&self.config.graph, it),
                false => Vec::new(),
            })
            .collect();
        if let WorkerSet::Idle(workers) = &mut self.workers {
            workers.iter_mut().for_each(|worker| worker.end(&begun));
        }
        self.make_all_calls();
    }

    /// Dismantles the router and balances the frames.
    pub fn dismantle(mut self) -> TeardownReport {
        let lost_workers = self.workers.join_threads();
        self.end();
        let mut panics = 0;
        if let WorkerSet::Idle(workers) = &self.workers {
            panics = workers.iter().map(|w| w.exec.panics).sum();
        }
        // Shared state keeps packets, too, and belongs to no worker.
        let frames = self.control.frames.clone();
        drop(self);
        castanet_packet::Pool::flush_thread();
        TeardownReport { leaked_frames: frames.leaked(), panics, lost_workers }
    }
}
