//! Processor time of tasks, measured once a program asks for it.

use super::Worker;
use castanet_element::exec::{CycleAccounting, RunKind};
use castanet_element::time::Clock;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Processor times of a worker since it began to measure, in nanoseconds.
#[derive(Clone, Default)]
pub(crate) struct TaskTimes {
    /// By element: the time of its tasks and timers, with all that followed from them.
    pub(crate) elements: Vec<u64>,
    /// The time of those runs in which packets moved.
    pub(crate) busy: u64,
    /// The time of the thread.
    pub(crate) spent: u64,
}

/// Time of a visit of an element under simulated time, where nothing takes time: ten microseconds,
/// so that loads are the same in each run.
pub(super) const VISIT: u64 = 10_000;

/// Measures the processor time of one worker's tasks.
pub(crate) struct TaskMeter {
    /// The time-stamp counter; none under simulated time.
    counter: Option<quanta::Clock>,
    /// By element: ticks since the times were settled last.
    fresh: Vec<u64>,
    /// The same of all runs in which packets moved.
    fresh_busy: u64,
    settled: TaskTimes,
    /// Whether a program has asked for the times, and will again.
    is_asked_for: bool,
}

impl TaskMeter {
    pub(crate) fn new(elements: usize, clock: &Clock) -> TaskMeter {
        TaskMeter {
            counter: (!clock.is_simulated()).then(quanta::Clock::new),
            fresh: vec![0; elements],
            fresh_busy: 0,
            settled: TaskTimes { elements: vec![0; elements], ..TaskTimes::default() },
            is_asked_for: false,
        }
    }

    fn now(&self) -> u64 {
        self.counter.as_ref().map_or(0, quanta::Clock::raw)
    }

    /// Charges a run that began at this time of the counter and visited so many elements.
    fn charge(&mut self, element: usize, begun: u64, visits: u32) {
        let time = match &self.counter {
            Some(counter) => counter.raw().saturating_sub(begun),
            None => (u64::from(visits) + 1) * VISIT,
        };
        self.fresh[element] += time;
        self.fresh_busy += if visits > 0 { time } else { 0 };
    }

    /// Times since the beginning; called on the worker's own thread. The counter goes on while the
    /// system runs another thread on the core, so the times since the last settlement are scaled to
    /// the thread's processor time.
    pub(crate) fn settle(&mut self) -> TaskTimes {
        self.is_asked_for = true;
        let Some(counter) = &self.counter else {
            let spent = self.fresh.iter().sum();
            return TaskTimes { elements: self.fresh.clone(), busy: self.fresh_busy, spent };
        };
        let spent = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
        let spent = spent.map_or(self.settled.spent, |it| it.as_nanos() as u64);
        let charged = self.fresh.iter().map(|&fresh| counter.delta_as_nanos(0, fresh)).sum::<u64>();
        // On another thread than before the share is unknown.
        let share = match spent.checked_sub(self.settled.spent) {
            Some(own) if charged > 0 => (own as f64 / charged as f64).min(1.0),
            _ => 1.0,
        };
        let settle = |settled: &mut u64, fresh: &mut u64| {
            *settled += (counter.delta_as_nanos(0, std::mem::take(fresh)) as f64 * share) as u64;
        };
        let TaskTimes { elements, busy, .. } = &mut self.settled;
        let pairs = elements.iter_mut().zip(&mut self.fresh);
        pairs.for_each(|(settled, fresh)| settle(settled, fresh));
        settle(busy, &mut self.fresh_busy);
        self.settled.spent = spent;
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
        let visits = self.graph.hops;
        if let Some(meter) = &mut self.meter {
            meter.charge(me, begun, visits);
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
