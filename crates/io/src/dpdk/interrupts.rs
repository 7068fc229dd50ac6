//! Receive interrupts: a worker sleeps until a port's interrupt instead of polling.

use crate::sys::dpdk::{InterruptListener, Port, drain_interrupts};
use crate::sys::{EpollSet, is_readable};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

/// The interrupts of the queues that a worker receives from.
pub(super) struct Interrupts {
    port: Arc<Port>,
    queues: Range<u16>,
    /// Becomes readable on interrupts of the drivers.
    driver_events: EpollSet,
    /// Receives a datagram when the port was restarted.
    restarts: UnixDatagram,
    /// Readable when either of the two is.
    events: EpollSet,
    /// The listener registered with the port.
    listener: InterruptListener,
    /// The start of the port (see [`Port::starts`]) after which the listener was registered.
    registered_start: Option<u64>,
    armed: bool,
}

/// Returns an error unless all queues have interrupts, none of them shared with one of `others`.
pub(super) fn check(
    port: &Arc<Port>,
    queues: &Range<u16>,
    mut others: impl Iterator<Item = u16>,
) -> Result<(), String> {
    let lacks = |why: &str| format!("its driver cannot wake who sleeps (RX_INTR): {why}");
    // The link of a memif may come and go; a sleeping worker would not revive the port.
    if port.is_memif {
        return Err(lacks("it has to be looked after"));
    }
    let mine: Vec<_> = queues.clone().filter_map(|queue| port.interrupt(queue)).collect();
    if let Some(other) = others.find(|it| port.interrupt(*it).is_some_and(|fd| mine.contains(&fd)))
    {
        let first = queues.start;
        return Err(lacks(&format!("queues {first} and {other} interrupt as one")));
    }
    let mut interrupts =
        Interrupts::new(port, queues).map_err(|error| lacks(&error.to_string()))?;
    interrupts.arm().map(drop).map_err(|why| lacks(&why))
}

impl Interrupts {
    pub(super) fn new(port: &Arc<Port>, queues: &Range<u16>) -> io::Result<Interrupts> {
        let (restarts, restart_notifier) = UnixDatagram::pair()?;
        restarts.set_nonblocking(true)?;
        restart_notifier.set_nonblocking(true)?;
        let driver_events = EpollSet::new(std::iter::empty())?;
        let events = EpollSet::new([driver_events.raw_fd(), restarts.as_raw_fd()].into_iter())?;
        let listener = InterruptListener {
            epoll: driver_events.raw_fd(),
            restart_notifier: Arc::new(restart_notifier),
        };
        let (port, queues) = (port.clone(), queues.clone());
        Ok(Interrupts {
            port,
            queues,
            driver_events,
            restarts,
            events,
            listener,
            registered_start: None,
            armed: false,
        })
    }

    /// Enables the queues' interrupts; returns the descriptor that is readable after one. `None` if
    /// the port does not run now.
    pub(super) fn arm(&mut self) -> Result<Option<RawFd>, String> {
        let starts = Some(self.port.starts());
        if self.registered_start != starts {
            for queue in self.queues.clone() {
                if !self.port.listen(queue, &self.listener)? {
                    return Ok(None);
                }
            }
            self.registered_start = starts;
        }
        self.armed = true;
        self.queues.clone().try_for_each(|queue| self.port.arm(queue, true))?;
        Ok(Some(self.events.raw_fd()))
    }

    /// Whether a queue holds a packet that its driver has not delivered yet. The driver has raised
    /// the interrupt for it and does not raise it again: DPDK's interrupts are edge-triggered.
    pub(super) fn is_behind(&self) -> bool {
        self.queues.clone().filter_map(|queue| self.port.interrupt(queue)).any(is_readable)
    }

    /// Disables the queues' interrupts; returns whether they were enabled.
    pub(super) fn disarm(&mut self) -> bool {
        let was_armed = std::mem::take(&mut self.armed);
        if was_armed {
            drain_interrupts(self.driver_events.raw_fd());
            while self.restarts.recv(&mut [0]).is_ok() {}
            // A superfluous interrupt does no harm, so errors are ignored.
            self.queues.clone().for_each(|queue| _ = self.port.arm(queue, false));
        }
        was_armed
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.disarm();
        self.queues.clone().for_each(|queue| self.port.unlisten(queue, &self.listener));
    }
}
