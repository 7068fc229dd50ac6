//! What each task costs: bills, written only where somebody wants to know.

use super::Worker;
use super::visits::{Visits, Why};
use crate::time::Clock;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// By element: the processor time of its tasks and timers, with all that
/// followed from them, in nanoseconds.
pub(crate) type Bills = Vec<u64>;

/// What a visit of an element costs under simulated time, when nothing takes
/// time: ten microseconds, so that loads are the same every time.
const VISIT: u64 = 10_000;

/// Takes down what one worker's tasks cost.
pub(crate) struct Meter {
    /// The time-stamp counter; none under simulated time.
    counter: Option<quanta::Clock>,
    /// Since the bills were last settled, in the counter's unit.
    fresh: Vec<u64>,
    settled: Bills,
    /// The processor time of the thread when they were.
    spent: Duration,
}

impl Meter {
    pub(crate) fn new(elements: usize, clock: &Clock) -> Meter {
        Meter {
            counter: (!clock.is_simulated()).then(quanta::Clock::new),
            fresh: vec![0; elements],
            settled: vec![0; elements],
            spent: Duration::ZERO,
        }
    }

    fn now(&self) -> u64 {
        self.counter.as_ref().map_or(0, quanta::Clock::raw)
    }

    fn bill(&mut self, element: usize, begun: u64, visits: u32) {
        self.fresh[element] += match &self.counter {
            Some(counter) => counter.raw().saturating_sub(begun),
            None => (u64::from(visits) + 1) * VISIT,
        };
    }

    /// What everything has cost so far. Counters go on while the system runs
    /// something else on the core, so the bills since the last time may not
    /// come to more than the thread's processor time; on its own thread.
    pub(crate) fn settle(&mut self) -> Bills {
        let Some(counter) = &self.counter else {
            self.settled.clone_from(&self.fresh);
            return self.settled.clone();
        };
        let spent = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
        let spent = spent.unwrap_or(self.spent);
        let billed = self.fresh.iter().map(|&fresh| counter.delta_as_nanos(0, fresh)).sum::<u64>();
        // On another thread than before nothing is known.
        let share = match spent.checked_sub(self.spent) {
            Some(own) if billed > 0 => (own.as_nanos() as f64 / billed as f64).min(1.0),
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
    /// Does something on behalf of element `me`, at its cost.
    pub(super) fn billed(&mut self, me: usize, why: Why, act: impl FnOnce(&mut Worker)) {
        let Some(begun) = self.meter.as_ref().map(Meter::now) else { return act(self) };
        self.core.hops = 0;
        let payer = self.core.visits.as_mut().map(|visits| visits.enter(me, why));
        act(self);
        if let (Some(visits), Some(payer)) = (&mut self.core.visits, payer) {
            visits.leave(payer);
        }
        let visits = self.core.hops;
        if let Some(meter) = &mut self.meter {
            meter.bill(me, begun, visits);
        }
    }

    /// Runs a task at its element's cost.
    #[inline(never)]
    pub(super) fn run_billed(&mut self, task: usize) {
        let element = self.tasks.job(task).element();
        self.billed(element, Why::Task, |worker| match worker.core.visits {
            None => worker.run::<false>(task),
            Some(_) => worker.run::<true>(task),
        });
    }

    /// Takes down from now on what each element costs by itself. With it goes
    /// the meter: where there is none, a turn looks for neither.
    pub(crate) fn count_cycles(&mut self) -> &mut Visits {
        let elements = self.slots.len();
        self.meter.get_or_insert_with(|| Meter::new(elements, &self.clock));
        self.core.visits.get_or_insert_with(|| Box::new(Visits::new(elements)))
    }
}
