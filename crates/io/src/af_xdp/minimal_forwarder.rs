//! A minimal AF_XDP forwarder without an engine: two sockets, one UMEM, four rings and a loop.

use crate::error::IoError;
use crate::interface::Interface;
use crate::sys::xsk::Forwarder;
use std::sync::atomic::AtomicBool;

/// Forwards from one interface to another in copy mode without reading the packets: the baseline
/// for measurements of forwarding by AF_XDP.
pub struct MinimalForwarder(Forwarder);

impl MinimalForwarder {
    /// Opens the first queue of each of two interfaces of the calling thread's network namespace.
    pub fn open(from: &str, to: &str) -> Result<MinimalForwarder, IoError> {
        let (here, there) = (Interface::find(from)?.index, Interface::find(to)?.index);
        Forwarder::new(here, there)
            .map(MinimalForwarder)
            .map_err(|error| IoError::new(format!("forward from {from} to {to} by AF_XDP"), error))
    }

    /// Forwards until `stop` is set; returns the number of packets.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<u64, IoError> {
        self.0.run(stop).map_err(|error| IoError::new("forward by AF_XDP", error))
    }
}
