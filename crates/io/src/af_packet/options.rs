//! Options of a packet socket.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Options of a packet socket.
#[derive(Clone, Debug)]
pub struct Options {
    /// How to receive.
    pub method: Method,
    /// Whether to take in frames for other hosts too.
    pub promiscuous: bool,
    /// Whether to take in what the host sends.
    pub outbound: bool,
    /// Whether to keep what is received from the kernel's own stack.
    pub exclusive: bool,
    /// Whether what is sent goes past the queueing discipline. It saves the
    /// cost of one where there is one (veth has none: 0.9 µs a packet either
    /// way), but then no other packet socket (`tcpdump`) sees it.
    pub bypass_qdisc: bool,
    /// The fanout group to join, if any.
    pub fanout: Option<Fanout>,
    /// The device number that received packets carry.
    pub device: u16,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            method: Method::Ring,
            promiscuous: false,
            outbound: false,
            exclusive: false,
            bypass_qdisc: false,
            fanout: None,
            device: 0,
        }
    }
}

/// How to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Not at all.
    SendOnly,
    /// From a `TPACKET_V3` ring: 48 ns for a 64-byte packet, its copy included.
    /// A lone packet waits until the kernel hands its block over, at most a
    /// millisecond and 0.4 ms on average.
    Ring,
    /// With a system call a packet, straight into its frame: no delay (0.05 ms),
    /// but 1.3 µs for a 64-byte packet.
    Socket,
}

/// A group of sockets that share an interface's packets.
#[derive(Clone, Debug)]
pub struct Fanout {
    /// The group.
    pub group: FanoutGroup,
    /// The rule that distributes the packets.
    pub mode: FanoutMode,
}

/// A fanout group of this process, whose number the kernel finds when its
/// first socket joins.
#[derive(Clone, Default, Debug)]
pub struct FanoutGroup(Arc<Mutex<Option<u16>>>);

impl PartialEq for FanoutGroup {
    fn eq(&self, other: &FanoutGroup) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl FanoutGroup {
    /// Forgets the group's number, because the interface of its sockets is gone.
    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Has a socket join, by the group's number or as the first, which is to
    /// answer the number found.
    pub(super) fn join(&self, join: impl FnOnce(Option<u16>) -> io::Result<u16>) -> io::Result<()> {
        let mut number = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *number = Some(join(*number)?);
        Ok(())
    }
}

/// The rule that distributes packets over a fanout group (`PACKET_FANOUT_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FanoutMode {
    /// By the flow's hash.
    Hash,
    /// By the CPU that the packet arrived on.
    Cpu,
    /// By the hardware queue that the packet arrived in.
    Queue,
    /// One after the other.
    RoundRobin,
}

impl FanoutMode {
    pub(super) fn number(self) -> u32 {
        match self {
            FanoutMode::Hash => libc::PACKET_FANOUT_HASH,
            FanoutMode::Cpu => libc::PACKET_FANOUT_CPU,
            FanoutMode::Queue => libc::PACKET_FANOUT_QM,
            FanoutMode::RoundRobin => libc::PACKET_FANOUT_LB,
        }
    }
}
