//! The address of the HTTP listener, and its socket.

use crate::load::io_error_text;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

/// A socket that listens, and that no client is accepted from yet.
pub(crate) struct HttpListener {
    pub(super) socket: TcpListener,
    /// Its address, with the port that was chosen for port 0.
    pub(crate) address: SocketAddr,
}

impl HttpListener {
    /// Reads an address: `IP:PORT`, or a port of the loopback interface.
    ///
    /// # Errors
    /// It is no address.
    pub(crate) fn parse(text: &str) -> Result<SocketAddr, String> {
        let loopback = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let port = text.strip_prefix("localhost:").unwrap_or(text);
        let by_port = port.parse().map(loopback);
        by_port.or_else(|_| text.parse()).map_err(|_| {
            "an address is IP:PORT, such as 127.0.0.1:9273 or [::1]:9273, or a port of this host".into()
        })
    }

    /// Listens at an address.
    ///
    /// # Errors
    /// The address is in use, or is not this host's.
    pub(crate) fn open(address: SocketAddr) -> Result<HttpListener, String> {
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::AddrInUse => format!("{address}: another program listens there"),
            ErrorKind::AddrNotAvailable => {
                format!("{address}: this host does not have this address")
            }
            _ => format!("{address}: {}", io_error_text(&error)),
        };
        let socket = TcpListener::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(HttpListener { socket, address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_the_loopback_interface() {
        let parse = |text| HttpListener::parse(text).map(|address| address.to_string());
        for text in ["9273", "localhost:9273", "127.0.0.1:9273"] {
            assert_eq!(parse(text), Ok("127.0.0.1:9273".to_owned()));
        }
        assert_eq!(parse("[::1]:0"), Ok("[::1]:0".to_owned()));
        for wrong in ["", "eth0", "127.0.0.1", ":9273", "1.2.3.4:99999", "example.org:80"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
