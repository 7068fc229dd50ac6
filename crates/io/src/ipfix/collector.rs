//! The address of a collector, and a UDP socket to it that never blocks.

use castanet_element::args::io_error_text;
use castanet_element::prelude::*;
use castanet_kit::ipfix::Transport;
use castanet_wire::ipfix::PORT;
use std::fmt::{self, Display, Formatter};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// The address and the port of a collector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectorAddress(SocketAddr);

impl FromArg for CollectorAddress {
    const SYNTAX: &'static str =
        "an address with a port, such as 192.0.2.1:4739 or [2001:db8::1]:4739";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let address = || text.parse().ok().map(|address: IpAddr| SocketAddr::new(address, PORT));
        let address = text.parse().ok().or_else(address).filter(|it| it.port() != 0);
        address
            .map(CollectorAddress)
            .ok_or_else(|| ArgError::new(format!("`{text}` is not {}", Self::SYNTAX)))
    }
}

impl Display for CollectorAddress {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl CollectorAddress {
    /// The address as a resource that an element needs.
    pub fn resource(&self) -> Resource {
        Resource::new(ResourceKind::Socket, format!("UDP {self}"), "sends IPFIX messages there")
    }
}

/// A UDP socket to a collector.
pub(super) struct CollectorSocket {
    collector: CollectorAddress,
    socket: UdpSocket,
    /// Whether the socket has the collector's address: only then does the kernel report that the
    /// collector's host refuses messages.
    is_connected: bool,
    /// Whether the collector's host has refused a message.
    was_refused: bool,
    /// The first error, until the caller takes it.
    error: Option<String>,
    has_reported: bool,
}

impl CollectorSocket {
    /// Opens a socket. A network without a route to the collector is no error: it may come up.
    pub(super) fn open(collector: CollectorAddress) -> Result<CollectorSocket, ArgError> {
        let failed = |error| ArgError::new(format!("{collector}: {}", io_error_text(&error)));
        let any: SocketAddr = match collector.0 {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        Ok(CollectorSocket {
            collector,
            socket,
            is_connected: false,
            was_refused: false,
            error: None,
            has_reported: false,
        })
    }

    /// The collector's address.
    pub(super) fn collector(&self) -> CollectorAddress {
        self.collector
    }

    fn report(&mut self, error: &std::io::Error) {
        if !self.has_reported {
            self.has_reported = true;
            let (collector, text) = (self.collector, io_error_text(error));
            self.error = Some(format!("collector {collector}: {text}"));
        }
    }

    /// A line about the first error, once.
    pub(super) fn take_error(&mut self) -> Option<String> {
        self.error.take()
    }
}

impl Transport for CollectorSocket {
    fn send(&mut self, message: &[u8]) -> bool {
        if !self.is_connected {
            let connected = self.socket.connect(self.collector.0);
            self.is_connected = connected.map_err(|error| self.report(&error)).is_ok();
        }
        // The answer to an earlier message takes the place of this one, once.
        let mut attempts = 2;
        while self.is_connected && attempts > 0 {
            match self.socket.send(message) {
                Ok(_) => return true,
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::ConnectionRefused => {
                        self.was_refused = true;
                        attempts -= 1;
                        self.report(&error);
                    }
                    _ => {
                        self.report(&error);
                        return false;
                    }
                },
            }
        }
        false
    }

    fn was_refused(&mut self) -> bool {
        if let Ok(Some(error)) = self.socket.take_error() {
            self.was_refused = true;
            self.report(&error);
        }
        std::mem::take(&mut self.was_refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, String> {
        let address = CollectorAddress::from_arg(text, &Names::default());
        address.map(|it| it.to_string()).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn an_address_has_a_port_or_gets_that_of_collectors() {
        assert_eq!(parsed("192.0.2.1:2055").as_deref(), Ok("192.0.2.1:2055"));
        assert_eq!(parsed("192.0.2.1").as_deref(), Ok("192.0.2.1:4739"));
        assert_eq!(parsed("2001:db8::1").as_deref(), Ok("[2001:db8::1]:4739"));
        assert_eq!(parsed("[::1]:1").as_deref(), Ok("[::1]:1"));
        for wrong in ["", "host:1", "192.0.2.1:0", "192.0.2.1:99999"] {
            let error = parsed(wrong).expect_err(wrong);
            assert!(error.starts_with(&format!("`{wrong}` is not an address")), "{error}");
        }
    }

    #[test]
    fn a_collector_that_is_not_there_refuses_messages_and_may_come_back() {
        let listen = |at| UdpSocket::bind(at).expect("is free");
        let receiver = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let address = receiver.local_addr().expect("is bound");
        let mut socket = CollectorSocket::open(CollectorAddress(address)).expect("opens");
        assert!(socket.send(b"first") && !socket.was_refused());
        assert_eq!(socket.take_error(), None);
        drop(receiver);
        assert!(socket.send(b"nobody listens"));
        // The answer of the loopback interface is there at once.
        assert!(socket.was_refused() && !socket.was_refused());
        let error = socket.take_error().expect("is reported");
        assert_eq!(error, format!("collector {address}: Connection refused"));
        assert!(socket.send(b"nor now"));
        let receiver = listen(address);
        assert!(socket.send(b"again") && socket.was_refused());
        assert_eq!(socket.take_error(), None, "is reported once");
        let mut buffer = [0; 16];
        let (len, _) = receiver.recv_from(&mut buffer).expect("comes in");
        assert_eq!(&buffer[..len], b"again");
        assert!(!socket.send(&[0; 70_000]), "is longer than a datagram");
    }
}
