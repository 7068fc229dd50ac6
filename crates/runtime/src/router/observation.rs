//! Observations: counts of elements and workers since the start, for live views.

use super::Router;
use crate::worker::{Worker, slot};
use castanet_element::class::Role;
use castanet_element::error::ArgError;
use castanet_element::exec::{Counters, CycleAccounting, ElementCost, Traffic};
use castanet_element::node::RoleNode;
use castanet_element::time::Time;
use nix::time::{ClockId, clock_gettime};
use std::sync::LazyLock;
use std::time::Duration;

/// Ticks of a visit in which nothing happens.
static EMPTY_VISIT: LazyLock<f64> = LazyLock::new(CycleAccounting::empty);

/// Counts of all elements and workers since the start.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The time.
    pub time: Time,
    /// By worker: processor time of its thread.
    pub workers: Vec<Duration>,
    /// By element, as in [`Router::graph`].
    pub elements: Vec<ElementObservation>,
}

/// Counts of one element, summed over all workers.
#[derive(Clone, Default, Debug)]
pub struct ElementObservation {
    /// Its packets.
    pub counters: Counters,
    /// Its cost in samples, while there are any.
    pub sample: CostSample,
    /// Packets that it keeps, and how many it can keep, for elements that store packets.
    pub queue: Option<QueueLength>,
}

/// Cost of an element in the tasks that were measured.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct CostSample {
    /// Packets of these tasks that came to the element, or that it made.
    pub traffic: Traffic,
    /// Time of the element by itself, without the time that the measurement takes.
    pub nanoseconds: f64,
}

/// Packets that an element keeps.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct QueueLength {
    /// Packets.
    pub held: usize,
    /// As many as it can keep; `None` if only memory limits it.
    pub capacity: Option<usize>,
}

/// Counts and samples of one worker.
struct WorkerReport {
    spent: Duration,
    counters: Vec<Counters>,
    samples: Vec<CostSample>,
    /// Stores that this worker can reach: element, length, and whether workers share it.
    queues: Vec<(usize, QueueLength, bool)>,
}

impl Router {
    /// Counts of all elements and workers. With a lease, workers take samples of cost for so long
    /// from now on (`castanet bench observe` measures what that takes).
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub fn observe(&mut self, lease: Option<Duration>) -> Result<Observation, ArgError> {
        let count = self.config.graph.elements.len();
        let mut elements = vec![ElementObservation::default(); count];
        let is_store = |&it: &usize| self.config.graph.elements[it].class.role == Role::Store;
        let stores: Vec<usize> = (0..count).filter(is_store).collect();
        let empty = *EMPTY_VISIT;
        let reports = self.workers.ask_all(move |worker| report(worker, &stores, lease, empty));
        let mut workers = Vec::new();
        for (worker, report) in reports.into_iter().enumerate() {
            let WorkerReport { spent, counters, samples, queues } = report?;
            workers.push(spent);
            for ((element, counters), sample) in elements.iter_mut().zip(&counters).zip(&samples) {
                element.counters.add(counters);
                element.sample.add(sample);
            }
            for (it, length, is_shared) in queues {
                let queue = &mut elements[it].queue;
                match queue {
                    None => *queue = Some(length),
                    Some(_) if is_shared && worker != self.config.assigned[it].home => {}
                    Some(queue) if is_shared => *queue = length,
                    Some(queue) => queue.held += length.held,
                }
            }
        }
        Ok(Observation { time: self.control.clock.peek(), workers, elements })
    }
}

impl CostSample {
    fn add(&mut self, other: &CostSample) {
        self.traffic.batches += other.traffic.batches;
        self.traffic.packets += other.traffic.packets;
        self.traffic.bytes += other.traffic.bytes;
        self.nanoseconds += other.nanoseconds;
    }

    fn of(
        cost: &ElementCost,
        traffic: Traffic,
        cycles: &CycleAccounting,
        empty: f64,
    ) -> CostSample {
        let total = cost.total();
        let ticks = (total.ticks as f64 - empty * total.calls as f64).max(0.0);
        CostSample { traffic, nanoseconds: cycles.nanoseconds(ticks as u64) as f64 }
    }
}

/// The report of a worker, made on its own thread.
fn report(
    worker: &mut Worker,
    stores: &[usize],
    lease: Option<Duration>,
    empty: f64,
) -> WorkerReport {
    if let Some(lease) = lease {
        worker.sample(lease);
        // Where all tasks are measured, these are the samples.
        if let Some(cycles) = &mut worker.exec.cycles {
            let elements = cycles.costs.len();
            cycles.traffic.get_or_insert_with(|| vec![Traffic::default(); elements]);
        }
    }
    let sampled = worker.sampler.as_ref().and_then(|sampler| sampler.cycles());
    let all = worker.exec.cycles.as_deref().filter(|cycles| cycles.traffic.is_some());
    let samples = match all.or(sampled) {
        None => vec![CostSample::default(); worker.exec.counters.len()],
        Some(cycles) => {
            let traffic = cycles.traffic.iter().flatten();
            let each = cycles.costs.iter().zip(traffic);
            each.map(|(cost, &traffic)| CostSample::of(cost, traffic, cycles, empty)).collect()
        }
    };
    let queues = stores.iter().filter_map(|&it| {
        let is_shared = slot::at(&worker.graph.slots, it)?.is_shared();
        let store = worker.graph.slots[it].node.as_ref().and_then(RoleNode::store)?;
        let (held, room) = (store.held(), store.room());
        let capacity = held.checked_add(room).filter(|&all| all < usize::MAX / 2);
        Some((it, QueueLength { held, capacity }, is_shared))
    });
    WorkerReport {
        spent: clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Into::into),
        queues: queues.collect(),
        counters: worker.exec.counters.clone(),
        samples,
    }
}
