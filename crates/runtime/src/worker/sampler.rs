//! Samples: cycles and traffic of elements, measured in some of a worker's tasks.

use super::Worker;
use castanet_element::exec::CycleAccounting;
use castanet_element::time::Time;
use std::time::Duration;

/// The worker runs without measurement for so many times the time of a sample, in which elements run
/// one by one and past no fused chain.
const PAUSE: u32 = 64;

/// After the pause, a random number of tasks below this one goes by before the next sample: tasks that
/// follow one another at fixed intervals would otherwise always be the same one.
const MOST_SKIPPED: u64 = 16;

/// Samples of one worker, until nobody looks at them any more.
pub(crate) struct Sampler {
    /// The end of the lease.
    until: Time,
    /// The time of the next sample.
    next: Time,
    /// Tasks that go by behind that time.
    skip: u64,
    /// Costs and traffic that samples have measured; `None` while a sample is taken.
    cycles: Option<Box<CycleAccounting>>,
}

impl Sampler {
    /// Costs and traffic that samples have measured.
    pub(crate) fn cycles(&self) -> Option<&CycleAccounting> {
        self.cycles.as_deref()
    }
}

impl Worker {
    /// Takes samples until the end of this lease, or of one that ends later.
    pub(crate) fn sample(&mut self, lease: Duration) {
        let (now, elements) = (self.clock.peek(), self.graph.slots.len());
        let sampler = self.sampler.get_or_insert_with(|| {
            let cycles = Some(Box::new(CycleAccounting::with_traffic(elements)));
            Box::new(Sampler { until: now, next: now, skip: 0, cycles })
        });
        sampler.until = sampler.until.max(now + lease);
    }

    /// Whether the next task is a sample. Ends the samples where the lease has ended.
    pub(super) fn is_sample(&mut self) -> bool {
        let (now, is_counted) = (self.exec.now, self.exec.cycles.is_some());
        match &mut self.sampler {
            Some(sampler) if sampler.until < now => {
                self.sampler = None;
                false
            }
            // All tasks are measured anyhow, for the handlers about cycles.
            Some(_) if is_counted => false,
            Some(sampler) if sampler.next > now => false,
            Some(sampler) => match sampler.skip {
                0 => true,
                _ => {
                    sampler.skip -= 1;
                    false
                }
            },
            None => false,
        }
    }

    /// Runs a task as a sample.
    pub(super) fn run_sample(&mut self, task: usize) {
        let cycles = self.sampler.as_mut().and_then(|sampler| sampler.cycles.take());
        let begun = cycles.as_ref().map_or(0, |cycles| cycles.ticks());
        self.exec.cycles = cycles;
        self.run_billed(task);
        let cycles = self.exec.cycles.take();
        // Looking at a router draws none of the numbers that a seed makes repeatable.
        let random = begun.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let Some(sampler) = &mut self.sampler else { return };
        if let Some(cycles) = &cycles {
            let took = cycles.nanoseconds(cycles.ticks().saturating_sub(begun));
            sampler.next = self.clock.peek() + Duration::from_nanos(took).saturating_mul(PAUSE);
            sampler.skip = random % MOST_SKIPPED;
        }
        sampler.cycles = cycles;
    }
}
