//! Processor time of tasks, measured once a program asks for it.

use super::Worker;
use castanet_element::exec::{CycleAccounting, RunKind};
use castanet_element::time::Clock;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// By element: processor time of its tasks and timers, with all that followed from them, in
/// nanoseconds.
pub(crate) type TaskTimes = Vec<u64>;

/// Time of a visit of an element under simulated time, where nothing takes time: ten microseconds,
/// so that loads are the same in each run.
pub(super) const VISIT: u64 = 10_000;

/// Measures the processor time of one worker's tasks.
pub(crate) struct TaskMeter {
    /// The time-stamp counter; none under simulated time.
    counter: Option<quanta::Clock>,
    /// By element: ticks since the times were settled last.
    fresh: Vec<u64>,
    settled: TaskTimes,
    /// Processor time of the thread when the times were settled last.
    spent: Duration,
    /// Whether a program has asked for the times, and will again.
    is_asked_for: bool,
}

impl TaskMeter {
    pub(crate) fn new(elements: usize, clock: &Clock) -> TaskMeter {
        TaskMeter {
            counter: (!clock.is_simulated()).then(quanta::Clock::new),
            fresh: vec![0; elements],
            settled: vec![0; elements],
            spent: Duration::ZERO,
            is_asked_for: false,
        }
    }

    fn now(&self) -> u64 {
        self.counter.as_ref().map_or(0, quanta::Clock::raw)
    }

    fn charge(&mut self, element: usize, begun: u64, cycles: u32) {
        self.fresh[element] += match &self.counter {
            Some(counter) => counter.raw().saturating_sub(begun),
            None => (u64::from(cycles) + 1) * VISIT,
        };
    }

    /// Times since the beginning; called on the worker's own thread. The counter goes on while the
    /// system runs another thread on the core, so the times since the last settlement are scaled to
    /// the thread's processor time.
    pub(crate) fn settle(&mut self) -> TaskTimes {
        self.is_asked_for = true;
        let Some(counter) = &self.counter else {
            self.settled.clone_from(&self.fresh);
            return self.settled.clone();
        };
        let spent = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
        let spent = spent.unwrap_or(self.spent);
        let charged = self.fresh.iter().map(|&fresh| counter.delta_as_nanos(0, fresh)).sum::<u64>();
        // On another thread than before the share is unknown.
        let share = match spent.checked_sub(self.spent) {
            Some(own) if charged > 0 => (own.as_nanos() as f64 / charged as f64).min(1.0),
            _ => 1.0,
        };
        self.spent = spent;
        for (settled, fresh) in self.settled.iter_mut().zip(&mut self.fresh) {
            *settled += (counter.delta_as_nanos(0, std::mem::take(fresh)) as f64 * share) as u64;
        }
        self.settled.clone()
    }
}

impl Worker {
    /// Charges the time of `act` to element `me`, in the measurements that are made.
    pub(super) fn charged(&mut self, me: usize, why: RunKind, act: impl FnOnce(&mut Worker)) {
        if self.meter.is_none() && self.exec.cycles.is_none() {
            return act(self);
        }
        let begun = self.meter.as_ref().map_or(0, TaskMeter::now);
        self.graph.hops = 0;
        let charged = self.exec.cycles.as_mut().map(|cycles| cycles.enter(me, why));
        act(self);
        if let (Some(cycles), Some(charged)) = (&mut self.exec.cycles, charged) {
            cycles.leave(charged);
        }
        let cycles = self.graph.hops;
        if let Some(meter) = &mut self.meter {
            meter.charge(me, begun, cycles);
        }
    }

    /// Runs a task, and measures what is asked for.
    #[inline(never)]
    pub(super) fn run_measured(&mut self, task: usize) {
        match (self.is_sample(), &self.meter) {
            (true, _) => self.run_sample(task),
            (false, Some(_)) => self.run_billed(task),
            (false, None) => self.run::<false>(task),
        }
    }

    /// Runs a task and charges its element.
    pub(super) fn run_billed(&mut self, task: usize) {
        let element = self.tasks.kind(task).element();
        self.charged(element, RunKind::Task, |worker| match worker.exec.cycles {
            None => worker.run::<false>(task),
            Some(_) => worker.run::<true>(task),
        });
    }

    /// Counts the cycles of each element from now on, and the times of tasks: a turn checks for one
    /// of them only.
    pub(crate) fn count_cycles(&mut self) -> &mut CycleAccounting {
        let elements = self.graph.slots.len();
        self.meter.get_or_insert_with(|| TaskMeter::new(elements, &self.clock));
        self.exec.cycles.get_or_insert_with(|| Box::new(CycleAccounting::new(elements)))
    }

    /// Ends to count cycles, and to measure times if no program has asked for them.
    pub(crate) fn end_cycles(&mut self) {
        self.exec.cycles = None;
        self.meter.take_if(|meter| !meter.is_asked_for);
    }
}
