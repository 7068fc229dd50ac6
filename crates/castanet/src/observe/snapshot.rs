//! Snapshot: totals of elements and workers since the start.

use castanet_element::error::ArgError;
use castanet_runtime::router::{ElementObservation, Observation, Router};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Totals of a router at one time. Two of them give rates ([`super::rates::Rates`]).
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// Nanoseconds since the epoch.
    pub(crate) time: i64,
    /// By worker.
    pub(crate) workers: Vec<WorkerTotals>,
    /// Elements, in the order of the flat configuration.
    pub(crate) elements: Vec<ElementTotals>,
}

/// Totals of one worker.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WorkerTotals {
    /// Processor time of its thread in nanoseconds.
    pub(crate) cpu: u64,
}

/// Totals of one element, summed over all workers.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct ElementTotals {
    pub(crate) name: String,
    pub(crate) class: String,
    /// Its first argument, if it is short: of a device, the interface.
    pub(crate) argument: String,
    /// Whether packets enter or leave the graph here, or wait here.
    pub(crate) is_end: bool,
    /// Packets that came in or that it made.
    pub(crate) packets: u64,
    /// Packets that came in.
    #[serde(default)]
    pub(crate) input: u64,
    /// Packets that it gave to connected outputs.
    #[serde(default)]
    pub(crate) output: u64,
    /// Packets dropped, by reason; those for outputs that nothing is connected to are under the
    /// output's name.
    pub(crate) drops: BTreeMap<String, u64>,
    /// Cost and bytes in samples, while workers take samples.
    pub(crate) sample: Option<SampleTotals>,
    /// Packets that it keeps, if it is a queue.
    pub(crate) queue: Option<QueueTotals>,
    /// Packets that the kernel or the driver dropped before the element could take them.
    pub(crate) kernel_drops: Option<u64>,
    /// The time of these totals in nanoseconds since the epoch, if it is not that of the snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<i64>,
}

/// Sums over the samples of an element.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct SampleTotals {
    pub(crate) batches: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) nanoseconds: f64,
}

/// Packets in a queue.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct QueueTotals {
    pub(crate) length: usize,
    /// As many as it takes; none if only memory limits it.
    pub(crate) capacity: Option<usize>,
}

impl Snapshot {
    /// The totals now. With a lease, workers take samples for so long from now on.
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub(crate) fn take(router: &mut Router, lease: Option<Duration>) -> Result<Snapshot, ArgError> {
        let Observation { time, workers, elements } = router.observe(lease)?;
        let nanoseconds = |spent: Duration| u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
        let workers = workers.into_iter().map(|it| WorkerTotals { cpu: nanoseconds(it) }).collect();
        let mut totals = Vec::with_capacity(elements.len());
        for (index, seen) in elements.into_iter().enumerate() {
            totals.push(ElementTotals::of(router, index, &seen));
        }
        Ok(Snapshot { time: time.0, workers, elements: totals })
    }

    /// The totals of an element, by its name.
    pub(crate) fn find(&self, name: &str) -> Option<&ElementTotals> {
        self.elements.iter().find(|it| it.name == name)
    }
}

impl ElementTotals {
    fn of(router: &mut Router, index: usize, seen: &ElementObservation) -> ElementTotals {
        let it = &router.graph().elements[index];
        let is_end = it.inputs.is_empty() || it.outputs.is_empty() || seen.queue.is_some();
        let (name, class) = (it.name.clone(), it.source.class.clone());
        let argument = first_argument(&it.config);
        let traffic = seen.sample.traffic;
        let sample = SampleTotals {
            batches: traffic.batches,
            packets: traffic.packets,
            bytes: traffic.bytes,
            nanoseconds: seen.sample.nanoseconds,
        };
        let handler = format!("{name}.kernel_drops");
        let kernel_drops = match router.has_handler(&handler, false) {
            true => router.read(&handler).ok().and_then(|text| text.trim().parse().ok()),
            false => None,
        };
        let queue = seen.queue.map(|it| QueueTotals { length: it.held, capacity: it.capacity });
        ElementTotals {
            name,
            class,
            argument,
            is_end,
            packets: seen.counters.input.max(seen.counters.made),
            input: seen.counters.input,
            output: seen.counters.output,
            drops: router.losses(index, &seen.counters).into_iter().collect(),
            sample: (traffic.batches > 0).then_some(sample),
            queue,
            kernel_drops,
            time: None,
        }
    }

    /// Packets dropped for whatever reason.
    pub(crate) fn dropped(&self) -> u64 {
        self.drops.values().sum()
    }
}

/// The first argument of a configuration, if it is short enough to stand in a table.
fn first_argument(config: &str) -> String {
    let first = castanet_lang::args::split(config).into_iter().next();
    first.map(|arg| arg.text).filter(|text| text.len() <= 16).unwrap_or_default()
}
