//! The limit of AF_XDP: two sockets, one memory, four rings and a loop, without an engine.

use crate::error::IoError;
use crate::interface::Interface;
use crate::sys::xsk::Relay;
use std::sync::atomic::AtomicBool;

/// Sends what one interface receives on another, in copy mode, and looks at
/// nothing: what an engine that forwards by AF_XDP is to be measured by.
pub struct Minimal(Relay);

impl Minimal {
    /// From one interface of the calling thread's namespace to another; only
    /// their first queues.
    pub fn open(from: &str, to: &str) -> Result<Minimal, IoError> {
        let (here, there) = (Interface::find(from)?.index, Interface::find(to)?.index);
        Relay::new(here, there)
            .map(Minimal)
            .map_err(|error| IoError::new(format!("forward from {from} to {to} by AF_XDP"), error))
    }

    /// Forwards until `stop` is set; says how many packets that were.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<u64, IoError> {
        self.0.run(stop).map_err(|error| IoError::new("forward by AF_XDP", error))
    }
}
