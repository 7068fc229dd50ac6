//! Who waits to be let in, while somebody else decides.

use rustix::net::{Ipv4Addr, SocketAddrAny, SocketAddrV4};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

/// More datagrams than this do not wait.
const WAITING: usize = 64;

/// A datagram that was received.
pub(super) struct Datagram {
    pub(super) bytes: Vec<u8>,
    /// How long it was.
    pub(super) whole: usize,
    pub(super) from: Option<SocketAddrAny>,
}

impl Datagram {
    fn source(&self) -> Option<SocketAddrV4> {
        SocketAddrV4::try_from(self.from.clone()?).ok()
    }
}

/// Who waits to be let in.
#[derive(Default)]
pub(super) struct Gate {
    client: Option<(OwnedFd, SocketAddrV4)>,
    datagrams: VecDeque<Datagram>,
    /// Those that were let in.
    admitted: VecDeque<Datagram>,
    /// Addresses that are yet to be asked for.
    questions: Vec<Ipv4Addr>,
}

impl Gate {
    /// Whether a client waits, so that no other can.
    pub(super) fn is_taken(&self) -> bool {
        self.client.is_some()
    }

    pub(super) fn hold_client(&mut self, fd: OwnedFd, from: SocketAddrV4) {
        self.client = Some((fd, from));
        self.questions.push(*from.ip());
    }

    pub(super) fn hold(&mut self, datagram: Datagram) {
        let Some(source) = datagram.source() else { return };
        if self.datagrams.len() >= WAITING {
            return;
        }
        // Who is asked for already speaks for all that wait from there.
        let asked = |other: &Datagram| other.source().is_some_and(|it| it.ip() == source.ip());
        if !self.datagrams.iter().any(asked) {
            self.questions.push(*source.ip());
        }
        self.datagrams.push_back(datagram);
    }

    pub(super) fn next(&mut self) -> Option<Datagram> {
        self.admitted.pop_front()
    }

    pub(super) fn questions(&mut self) -> Vec<Ipv4Addr> {
        std::mem::take(&mut self.questions)
    }

    /// Says of an address whether it may come in: the client from there, if it
    /// may, and what there is to say of those that may not.
    pub(super) fn judge(
        &mut self,
        address: Ipv4Addr,
        may: bool,
    ) -> (Option<(OwnedFd, SocketAddrV4)>, Vec<String>) {
        let mut denied = Vec::new();
        let mut client = self.client.take_if(|(_, from)| *from.ip() == address);
        if let Some((fd, from)) = client.take_if(|_| !may) {
            use std::os::fd::AsRawFd;
            denied.push(format!("denied connection {} from {from}", fd.as_raw_fd()));
        }
        for datagram in std::mem::take(&mut self.datagrams) {
            match datagram.source() {
                Some(source) if *source.ip() != address => self.datagrams.push_back(datagram),
                _ if may => self.admitted.push_back(datagram),
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
        Datagram { bytes: vec![byte], whole: 1, from: Some(from.into()) }
    }

    #[test]
    fn each_address_is_asked_for_once_and_speaks_for_all_that_wait() {
        let mut gate = Gate::default();
        for (from, byte) in [("1.0.0.1:5", 1), ("1.0.0.2:5", 2), ("1.0.0.1:6", 3)] {
            gate.hold(datagram(from, byte));
        }
        let [one, two] = [Ipv4Addr::new(1, 0, 0, 1), Ipv4Addr::new(1, 0, 0, 2)];
        assert_eq!(gate.questions(), [one, two]);
        assert_eq!(gate.questions(), [] as [Ipv4Addr; 0]);
        assert!(gate.next().is_none());
        let (client, denied) = gate.judge(two, false);
        assert!(client.is_none());
        assert_eq!(denied, ["dropped datagram from 1.0.0.2:5"]);
        assert!(gate.judge(one, true).1.is_empty());
        let bytes: Vec<u8> = std::iter::from_fn(|| gate.next()).map(|it| it.bytes[0]).collect();
        assert_eq!(bytes, [1, 3]);
        // Whoever comes again is asked for again, and no more than so many wait.
        for n in 0..2 * WAITING {
            gate.hold(datagram("1.0.0.1:5", n as u8));
        }
        assert_eq!(gate.questions(), [one]);
        gate.judge(one, true);
        assert_eq!(std::iter::from_fn(|| gate.next()).count(), WAITING);
    }
}
