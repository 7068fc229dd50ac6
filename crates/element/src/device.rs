//! Step: which devices the elements stand for, and what is wanted of them.

use std::ops::Range;

/// A device, as one element uses it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Its name; elements with one name have the same device.
    pub name: String,
    /// The chosen backend, and the reason of the choice.
    pub how: String,
    /// Its NUMA node, if that is known.
    pub node: Option<usize>,
    /// The queues that the element may use.
    pub queues: Queues,
    /// The workers that are to receive.
    pub rx_threads: RxThreads,
}

/// The queues of a device that an element may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queues {
    /// The first; `None` for the first one that no other element has.
    pub first: Option<usize>,
    /// Fewest, however few the workers: the queues to which the device sends packets.
    pub least: usize,
    /// Most, however many the workers.
    pub most: usize,
    /// Whether they are the program's own sockets, of which there can be any
    /// number, rather than the device's queues.
    pub sockets: bool,
}

/// The workers that are to receive from a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RxThreads {
    /// Most of them, if there is a limit.
    pub most: Option<usize>,
    /// The first, counted among those that are free; `None` leaves the choice to the runtime.
    pub offset: Option<usize>,
    /// Whether they should be at the device's NUMA node.
    pub numa: bool,
    /// Whether all workers receive, rather than a share of them.
    pub parallel: bool,
}

impl Default for RxThreads {
    fn default() -> RxThreads {
        RxThreads { most: None, offset: None, numa: true, parallel: false }
    }
}

/// Queues of an element's device that one worker has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueShare {
    /// The worker.
    pub worker: usize,
    /// Its queues: those it polls, or the one that it sends to.
    pub queues: Range<usize>,
    /// Other workers that send to the same queue, for which it is locked.
    pub with: Vec<usize>,
}
