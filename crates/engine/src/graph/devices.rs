//! Step: which devices the elements stand for, and what is wanted of them.
//!
//! The only step that asks the machine something; what it answers is plain
//! data, so that the steps after it can be tried for any machine.

use super::Graph;
use crate::args::Names;
use crate::element::Facts;
use std::ops::Range;

/// A device, as one element uses it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// What it is called; elements of one name have the same device.
    pub name: String,
    /// How packets will come or go, and why that way.
    pub how: String,
    /// The NUMA node it is at, if that is known.
    pub node: Option<usize>,
    /// Which of its queues the element may use.
    pub queues: Queues,
    /// Which workers are to receive.
    pub crew: Crew,
}

/// Which queues of a device an element may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queues {
    /// The first; the first that no other element has if not given.
    pub first: Option<usize>,
    /// Fewest, however few the workers: all those that packets come to.
    pub least: usize,
    /// Most, however many the workers.
    pub most: usize,
    /// Whether they are the program's own sockets, of which there can be any
    /// number, rather than the device's queues.
    pub sockets: bool,
}

/// Which workers are to receive from a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crew {
    /// Most of them, if there is a limit.
    pub most: Option<usize>,
    /// The first, counted among those that are free; decided by the engine
    /// if not given.
    pub offset: Option<usize>,
    /// Whether they should be at the device's NUMA node.
    pub numa: bool,
    /// Whether they are all there are, rather than a share.
    pub parallel: bool,
}

impl Default for Crew {
    fn default() -> Crew {
        Crew { most: None, offset: None, numa: true, parallel: false }
    }
}

/// What one worker has of an element's device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// The worker.
    pub worker: usize,
    /// Its queues: those it polls, or the one that it sends to.
    pub queues: Range<usize>,
    /// Other workers that send to the same queue, for which it is locked.
    pub with: Vec<usize>,
}

/// By element: its device, if it stands for one and its arguments are right.
pub fn find(graph: &Graph, facts: &Facts) -> Vec<Option<Device>> {
    let names = Names::new(&facts.addresses, None);
    let device = |it: &super::Element| (it.class.device?)(&it.config, &names);
    graph.elements.iter().map(device).collect()
}
