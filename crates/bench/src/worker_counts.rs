//! Measurement of one configuration with several numbers of workers.

use super::measure::{Run, median};
use super::router::{Sample, count, rate, sample};
use castanet_runtime::router::Router;
use std::time::Duration;

/// A router with a number of workers, and its runs.
pub(crate) struct WorkerCount {
    pub(crate) workers: usize,
    pub(crate) router: Router,
    samples: Vec<Sample>,
}

impl WorkerCount {
    /// Million packets a second, all workers together.
    pub(crate) fn mpps(&self) -> f64 {
        rate(&self.samples)
    }

    /// Nanoseconds of processor time a packet.
    pub(crate) fn ns_per_packet(&self) -> f64 {
        median(&self.samples.iter().map(|sample| sample.run).collect::<Vec<Run>>())
    }
}

/// Measures the routers of one worker, which is the first, and of each other number: each in turn, round
/// after round. Packets are counted by the element `end`. The first of `rounds + 1` rounds warms up.
pub(crate) fn measure(
    worker_counts: &[usize],
    rounds: usize,
    time: Duration,
    router: impl Fn(usize) -> Result<Router, String>,
) -> Result<Vec<WorkerCount>, String> {
    let others = worker_counts.iter().copied().filter(|&workers| workers > 1);
    let of = |workers| Ok(WorkerCount { workers, router: router(workers)?, samples: Vec::new() });
    let mut all = [1].into_iter().chain(others).map(of).collect::<Result<Vec<_>, String>>()?;
    for round in 0..=rounds {
        for WorkerCount { workers, router, samples } in &mut all {
            let sample = sample(router, *workers, time, |it| count(it, "end.count"));
            if round > 0 {
                samples.push(sample);
            }
        }
    }
    Ok(all)
}
