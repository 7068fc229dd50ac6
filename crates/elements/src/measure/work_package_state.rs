//! State of `WorkPackage`: the random numbers, and the cycles of the work.

use castanet_element::exec::{ChargedRun, CycleAccounting, RunKind};
use castanet_element::handler::Sums;
use castanet_element::prelude::*;

/// State of one worker.
#[derive(Local)]
#[local(methods)]
pub struct WorkPackageState {
    pub(super) random: u64,
    /// Counts cycles, with ANALYSIS.
    cycles: Option<Box<CycleAccounting>>,
    /// Steps of the random number generator whose cycles were counted.
    work: u64,
}

impl Default for WorkPackageState {
    fn default() -> WorkPackageState {
        WorkPackageState { random: 1, cycles: None, work: 0 }
    }
}

impl WorkPackageState {
    /// Counts cycles from now on, or no more.
    pub(super) fn count_cycles(&mut self, on: bool) {
        match on {
            true => _ = self.cycles.get_or_insert_with(|| Box::new(CycleAccounting::new(1))),
            false => self.cycles = None,
        }
    }

    /// Called before the work for a batch, for [`WorkPackageState::end`].
    #[inline]
    pub(super) fn begin(&mut self) -> Option<ChargedRun> {
        self.cycles.as_mut().map(|counter| counter.enter(0, RunKind::Transfer))
    }

    /// Called after so many steps of the random number generator.
    #[inline]
    pub(super) fn end(&mut self, before: Option<ChargedRun>, steps: u64) {
        if let (Some(counter), Some(before)) = (&mut self.cycles, before) {
            counter.leave(before);
            self.work += steps;
        }
    }

    fn counted(&self) -> u64 {
        self.cycles.as_ref().map_or(0, |counter| counter.costs[0].transfers.ticks)
    }
}

#[handlers]
impl WorkPackageState {
    /// Cycles of the work, with ANALYSIS.
    #[read(cycles)]
    fn cycles_of_work(&self) -> u64 {
        self.counted()
    }
    /// Cycles for each step of the random number generator, with ANALYSIS.
    #[read]
    fn cycles_per_work(&self) -> Value {
        let ratio = |sums: &[u64]| match sums {
            [cycles, work] if *work > 0 => (*cycles as f64 / *work as f64).to_string(),
            _ => "0".to_owned(),
        };
        Sums::new(vec![self.counted(), self.work], ratio).into()
    }
    /// Steps of the random number generator whose cycles were counted, with ANALYSIS.
    #[read]
    fn cycles_work(&self) -> u64 {
        self.work
    }
    /// Counts cycles from zero.
    #[write(cycles)]
    fn reset_cycles(&mut self, _: &str) -> Result<(), ArgError> {
        self.work = 0;
        self.cycles.iter_mut().for_each(|counter| **counter = CycleAccounting::new(1));
        Ok(())
    }
}

/// The next number of a sequence (Marsaglia: *Xorshift RNGs*, 2003).
#[inline]
pub(super) fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}
