//! Holds clients and datagrams until the element has decided on their addresses.

use rustix::net::{Ipv4Addr, SocketAddrAny, SocketAddrV4};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

/// Maximum number of datagrams that wait; more are dropped.
const MAX_WAITING: usize = 64;

/// A datagram that was received.
pub(super) struct Datagram {
    pub(super) bytes: Vec<u8>,
    /// The length before it was cut to the buffer, in bytes.
    pub(super) full_len: usize,
    pub(super) from: Option<SocketAddrAny>,
}

impl Datagram {
    fn source(&self) -> Option<SocketAddrV4> {
        SocketAddrV4::try_from(self.from.clone()?).ok()
    }
}

/// The client and the datagrams that wait for a decision on their addresses.
#[derive(Default)]
pub(super) struct AccessGate {
    client: Option<(OwnedFd, SocketAddrV4)>,
    datagrams: VecDeque<Datagram>,
    /// The datagrams from permitted addresses.
    admitted: VecDeque<Datagram>,
    /// Addresses that the element has yet to decide on.
    queries: Vec<Ipv4Addr>,
}

impl AccessGate {
    /// Returns whether a client waits; no other client can wait meanwhile.
    pub(super) fn is_taken(&self) -> bool {
        self.client.is_some()
    }

    pub(super) fn hold_client(&mut self, fd: OwnedFd, from: SocketAddrV4) {
        self.client = Some((fd, from));
        self.queries.push(*from.ip());
    }

    pub(super) fn hold_datagram(&mut self, datagram: Datagram) {
        let Some(source) = datagram.source() else { return };
        if self.datagrams.len() >= MAX_WAITING {
            return;
        }
        // One decision applies to all datagrams from the address.
        let asked = |other: &Datagram| other.source().is_some_and(|it| it.ip() == source.ip());
        if !self.datagrams.iter().any(asked) {
            self.queries.push(*source.ip());
        }
        self.datagrams.push_back(datagram);
    }

    pub(super) fn next(&mut self) -> Option<Datagram> {
        self.admitted.pop_front()
    }

    pub(super) fn queries(&mut self) -> Vec<Ipv4Addr> {
        std::mem::take(&mut self.queries)
    }

    /// Applies the decision on an address. Returns the client from there if it is permitted, and
    /// the log lines of rejected ones.
    pub(super) fn decide(
        &mut self,
        address: Ipv4Addr,
        is_allowed: bool,
    ) -> (Option<(OwnedFd, SocketAddrV4)>, Vec<String>) {
        let mut denied = Vec::new();
        let mut client = self.client.take_if(|(_, from)| *from.ip() == address);
        if let Some((fd, from)) = client.take_if(|_| !is_allowed) {
            use std::os::fd::AsRawFd;
            denied.push(format!("denied connection {} from {from}", fd.as_raw_fd()));
        }
        for datagram in std::mem::take(&mut self.datagrams) {
            match datagram.source() {
                Some(source) if *source.ip() != address => self.datagrams.push_back(datagram),
                _ if is_allowed => self.admitted.push_back(datagram),
                Some(source) => denied.push(format!("dropped datagram from {source}")),
                None => {}
            }
        }
        (client, denied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(from: &str, byte: u8) -> Datagram {
        let from: SocketAddrV4 = from.parse().unwrap();
        Datagram { bytes: vec![byte], full_len: 1, from: Some(from.into()) }
    }

    #[test]
    fn each_address_is_asked_for_once_and_speaks_for_all_that_wait() {
        let mut gate = AccessGate::default();
        for (from, byte) in [("1.0.0.1:5", 1), ("1.0.0.2:5", 2), ("1.0.0.1:6", 3)] {
            gate.hold_datagram(datagram(from, byte));
        }
        let [one, two] = [Ipv4Addr::new(1, 0, 0, 1), Ipv4Addr::new(1, 0, 0, 2)];
        assert_eq!(gate.queries(), [one, two]);
        assert_eq!(gate.queries(), [] as [Ipv4Addr; 0]);
        assert!(gate.next().is_none());
        let (client, denied) = gate.decide(two, false);
        assert!(client.is_none());
        assert_eq!(denied, ["dropped datagram from 1.0.0.2:5"]);
        assert!(gate.decide(one, true).1.is_empty());
        let bytes: Vec<u8> = std::iter::from_fn(|| gate.next()).map(|it| it.bytes[0]).collect();
        assert_eq!(bytes, [1, 3]);
        // An address that sends again needs another decision, and at most `MAX_WAITING` datagrams
        // wait.
        for n in 0..2 * MAX_WAITING {
            gate.hold_datagram(datagram("1.0.0.1:5", n as u8));
        }
        assert_eq!(gate.queries(), [one]);
        gate.decide(one, true);
        assert_eq!(std::iter::from_fn(|| gate.next()).count(), MAX_WAITING);
    }
}
