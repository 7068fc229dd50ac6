//! Limits of the way of a batch, so that it ends where the graph goes in circles.

use crate::worker::slot::WorkerGraph;
use castanet_element::exec::ExecState;
use castanet_element::fate::LOOPED;
use castanet_packet::Batch;

/// Elements that one batch may visit before it counts as going in circles.
pub(super) const MAX_DEPTH: u32 = 20_000;
/// Elements that one burst may visit in all (a loop through a `Tee`).
pub(in crate::worker) const MAX_HOPS: u32 = 1_000_000;

/// Whether a batch has visited so many elements that it must be going in circles.
#[inline(always)]
pub(in crate::worker) fn is_in_circles(graph: &WorkerGraph, depth: u32) -> bool {
    depth > MAX_DEPTH || graph.hops > MAX_HOPS
}

/// The time at which a run is cut.
pub(in crate::worker) struct Deadline {
    pub(in crate::worker) counter: quanta::Clock,
    /// In ticks of the counter.
    pub(in crate::worker) at: u64,
    /// Elements that are visited between two looks at the counter.
    pub(in crate::worker) step: u32,
}

/// Whether a batch may go on that has visited as many elements as its run may: until the next look at
/// the time, if there is a deadline.
#[inline(never)]
pub(super) fn may_go_on(graph: &mut WorkerGraph, depth: u32) -> bool {
    if is_in_circles(graph, depth) {
        return false;
    }
    let Some(Deadline { counter, at, step }) = &graph.deadline else { return false };
    let goes_on = counter.raw() < *at;
    if goes_on {
        graph.most_hops = graph.hops.saturating_add(*step);
    }
    goes_on
}

/// Drops a batch that goes in circles.
#[cold]
pub(in crate::worker) fn drop_looped(exec: &mut ExecState, me: usize, batch: &mut Batch) {
    exec.counters[me].input += batch.len() as u64;
    exec.drop_packets(me, LOOPED, batch.as_slice());
    batch.clear();
}
