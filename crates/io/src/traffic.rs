//! Traffic generators and sinks within the kernel, for measurements.

use crate::error::IoError;
use crate::interface::Interface;
use crate::sys::xdp;
use castanet_wire::{Ethernet, Ipv4Header, MacAddr, Udp, ether_type, ip_proto};
use std::net::Ipv4Addr;
use zerocopy::IntoBytes;

/// Length in bytes of the smallest Ethernet frame, without its checksum.
pub const FRAME: usize = 64;

/// Makes a frame of UDP from 10.1.255.255 to 20.1.0.0, as [`Source`] needs it: its checksum stays
/// correct if any 16 bits replace the lower half of the destination address, and their complement
/// that of the source address.
pub fn frame(to: MacAddr, from: MacAddr) -> [u8; FRAME] {
    frame_between((from, Ipv4Addr::new(10, 1, 255, 255)), (to, Ipv4Addr::new(20, 1, 0, 0)))
}

/// Makes a frame of UDP over IPv4 from one host to another.
pub fn frame_between(from: (MacAddr, Ipv4Addr), to: (MacAddr, Ipv4Addr)) -> [u8; FRAME] {
    let ether = Ethernet::new(to.0, from.0, ether_type::IPV4);
    let length = FRAME - size_of::<Ethernet>();
    let mut ip = Ipv4Header::new(ip_proto::UDP, from.1, to.1, length as u16);
    ip.update_checksum(&[]);
    let mut frame = [0; FRAME];
    let (head, rest) = frame.split_at_mut(size_of::<Ethernet>());
    head.copy_from_slice(ether.as_bytes());
    let (head, rest) = rest.split_at_mut(size_of::<Ipv4Header>());
    head.copy_from_slice(ip.as_bytes());
    rest[..size_of::<Udp>()].copy_from_slice(&[0, 53, 0, 53, 0, 30, 0, 0]);
    frame
}

/// A generator: the kernel makes packets and sends them on an interface, 13 million a second into a
/// veth pair, faster than any program can. Needs Linux 5.18. It occupies the interface's XDP
/// program in the driver until it is dropped; received packets pass.
pub struct Source(xdp::Source);

/// Number of bytes of a frame that a [`Source`] writes anew for each packet: all that a router
/// changes, and the addresses.
const REWRITTEN: usize = 36;
/// Offsets of the lower halves of an IPv4 packet's addresses, after an Ethernet header.
const SRC_LOW: i16 = 28;
const DST_LOW: i16 = 32;

impl Source {
    /// Creates a generator on the interface `name` of the calling thread's namespace. All packets
    /// equal `frame`, IPv4 over Ethernet, except for the lower 16 bits of their addresses. The
    /// frame must have zeros there in its destination and ones in its source.
    pub fn new(name: &str, frame: &[u8]) -> Result<Source, IoError> {
        let index = Interface::find(name)?.index;
        xdp::Source::new(index, frame, REWRITTEN, DST_LOW, SRC_LOW)
            .map(Source)
            .map_err(|error| IoError::new(format!("make packets for {name}"), error))
    }

    /// Sends this number of packets, or fewer if a signal arrives. The calling thread must be in
    /// the namespace.
    pub fn send(&self, packets: u32) -> Result<(), IoError> {
        self.0.send(packets).map_err(|error| IoError::new("make packets", error))
    }
}

/// Counts the packets that an interface receives, and drops them.
pub struct Sink(xdp::Sink);

impl Sink {
    /// Counts packets on the interface `name` of the calling thread's namespace until dropped.
    pub fn new(name: &str) -> Result<Sink, IoError> {
        let index = Interface::find(name)?.index;
        xdp::Sink::new(index)
            .map(Sink)
            .map_err(|error| IoError::new(format!("count packets on {name}"), error))
    }

    /// Returns the number of packets so far.
    pub fn count(&self) -> Result<u64, IoError> {
        self.0.count().map_err(|error| IoError::new("read a count of packets", error))
    }
}

/// Redirects all packets that one interface receives to another, within the kernel.
pub struct Shortcut {
    _it: xdp::Redirect,
}

impl Shortcut {
    /// Redirects between two interfaces of the calling thread's namespace until dropped.
    pub fn new(from: &str, to: &str) -> Result<Shortcut, IoError> {
        let (here, there) = (Interface::find(from)?.index, Interface::find(to)?.index);
        let it = xdp::Redirect::new(here, there);
        it.map(|it| Shortcut { _it: it })
            .map_err(|error| IoError::new(format!("redirect packets from {from} to {to}"), error))
    }
}
