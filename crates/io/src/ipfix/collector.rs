//! The address of a collector, and a UDP socket to it that never blocks.

use castanet_element::args::io_error_text;
use castanet_element::prelude::*;
use castanet_kit::ipfix::Delivery;
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
        let (is_connected, error, has_reported) = (false, None, false);
        Ok(CollectorSocket { collector, socket, is_connected, error, has_reported })
    }

    /// The collector's address.
    pub(super) fn collector(&self) -> CollectorAddress {
        self.collector
    }

    /// Sends a message, or loses it: the caller does not wait for the network.
    pub(super) fn send(&mut self, message: &[u8]) -> Delivery {
        let mut was_refused = false;
        if !self.is_connected {
            match self.socket.connect(self.collector.0) {
                Ok(()) => self.is_connected = true,
                Err(error) => {
                    self.report(&error);
                    return Delivery { is_sent: false, was_refused };
                }
            }
        }
        loop {
            match self.socket.send(message) {
                Ok(_) => return Delivery { is_sent: true, was_refused },
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The answer to an earlier message, which takes the place of this one once.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused && !was_refused => {
                    was_refused = true;
                    self.report(&error);
                }
                Err(error) => {
                    self.report(&error);
                    return Delivery { is_sent: false, was_refused };
                }
            }
        }
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
        let sent = |was_refused| Delivery { is_sent: true, was_refused };
        assert_eq!(socket.send(b"first"), sent(false));
        assert_eq!(socket.take_error(), None);
        drop(receiver);
        assert_eq!(socket.send(b"nobody listens"), sent(false));
        assert_eq!(socket.send(b"neither now"), sent(true));
        let error = socket.take_error().expect("is reported");
        assert_eq!(error, format!("collector {address}: Connection refused"));
        let receiver = listen(address);
        assert_eq!(socket.send(b"again"), sent(true));
        assert_eq!(socket.take_error(), None, "is reported once");
        let mut buffer = [0; 16];
        let (len, _) = receiver.recv_from(&mut buffer).expect("comes in");
        assert_eq!(&buffer[..len], b"again");
        // Longer than a datagram.
        let lost = Delivery { is_sent: false, was_refused: false };
        assert_eq!(socket.send(&[0; 70_000]), lost);
    }
}
