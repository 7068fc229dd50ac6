//! Sleeping until a port says that packets have come, instead of looking for them.

use crate::sys::AnyOf;
use crate::sys::dpdk::{Port, heard};
use std::io;
use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::Arc;

/// The interrupts of those queues that a worker receives from.
pub(super) struct Interrupts {
    port: Arc<Port>,
    queues: Range<u16>,
    /// Readable when any of the queues has called.
    ears: AnyOf,
    /// The start of the port after which the queues were told whom to call.
    told: Option<u64>,
    armed: bool,
}

impl Interrupts {
    pub(super) fn new(port: &Arc<Port>, queues: &Range<u16>) -> io::Result<Interrupts> {
        let ears = AnyOf::new(std::iter::empty())?;
        let (port, queues) = (port.clone(), queues.clone());
        Ok(Interrupts { port, queues, ears, told: None, armed: false })
    }

    /// Has the queues call when a packet comes; the descriptor that is readable then. None where
    /// the port does not run now.
    pub(super) fn arm(&mut self) -> Result<Option<RawFd>, String> {
        let (fd, starts) = (self.ears.raw_fd(), Some(self.port.starts()));
        if self.told != starts {
            for queue in self.queues.clone() {
                if !self.port.watch(queue, fd)? {
                    return Ok(None);
                }
            }
            self.told = starts;
        }
        self.armed = true;
        self.queues.clone().try_for_each(|queue| self.port.arm(queue, true))?;
        Ok(Some(fd))
    }

    /// Has them call no longer; whether they were to.
    pub(super) fn disarm(&mut self) -> bool {
        let was_armed = std::mem::take(&mut self.armed);
        if was_armed {
            heard(self.ears.raw_fd());
            // A queue that calls once too often does no harm.
            self.queues.clone().for_each(|queue| _ = self.port.arm(queue, false));
        }
        was_armed
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.disarm();
        let fd = self.ears.raw_fd();
        self.queues.clone().for_each(|queue| self.port.unwatch(queue, fd));
    }
}
