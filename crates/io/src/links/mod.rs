//! Interfaces that go and come back while a router runs.
//!
//! Each element has, on each of its workers, an [`Attachment`] to its interface. The
//! [`LinkSupervisor`], on the control thread, learns of changes by netlink. It has workers close the
//! devices of an interface that is gone, opens them again when an interface of that name is up, and
//! hands them over. Workers make no system call for it and look at nothing: the router calls them.

mod attachment;
mod registry;
mod supervisor;
mod watcher;

pub(crate) use attachment::{Attachment, DeviceCommand};
pub(crate) use registry::{is_awaited, is_supervised, remembered};
pub use supervisor::{LinkNotice, LinkReport, LinkSupervisor};

use crate::sys::ethtool;
use crate::sys::netif::{self, IoctlSocket};
use std::fmt;

/// State of an interface, as its elements see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// Packets can come and go.
    Up,
    /// It was taken down.
    Down,
    /// It is up, but its other end or its cable is not.
    NoCarrier,
    /// There is no such interface, or it could not be opened again.
    Gone,
}

impl fmt::Display for LinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LinkState::Up => "up",
            LinkState::Down => "down",
            LinkState::NoCarrier => "no carrier",
            LinkState::Gone => "gone",
        })
    }
}

impl LinkState {
    /// The state of the interface called `name` as the kernel has it.
    pub(crate) fn of(name: &str) -> LinkState {
        let Ok(requests) = IoctlSocket::new(name) else { return LinkState::Gone };
        let Ok(flags) = requests.flags() else { return LinkState::Gone };
        if flags & libc::IFF_UP == 0 {
            return LinkState::Down;
        }
        // The kernel sets the flag up to a second later than the driver says it.
        let is_running = flags & libc::IFF_RUNNING != 0;
        match ethtool::has_carrier(&requests).unwrap_or(is_running) {
            true => LinkState::Up,
            false => LinkState::NoCarrier,
        }
    }

    /// The same for the interface of number `index`, whatever its name is now.
    fn of_index(index: u32) -> LinkState {
        netif::name_of(index).map_or(LinkState::Gone, |name| LinkState::of(&name))
    }
}

/// The state of an interface by the name that elements know it by: that of the one they have open.
pub(crate) fn state(devname: &str) -> LinkState {
    let mut attached = registry::here().into_iter().filter(|it| it.devname() == devname).peekable();
    match attached.peek().and_then(|it| it.interface()) {
        Some(index) => LinkState::of_index(index),
        None if attached.peek().is_some() => LinkState::Gone,
        None => LinkState::of(devname),
    }
}
