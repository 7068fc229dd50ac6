//! The `METHOD` argument of device elements.

use castanet_element::args::{FromArg, Names};
use castanet_element::error::ArgError;

/// The method by which an element receives from and sends to its device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    /// The fastest method that the interface supports and that does not keep packets from a
    /// host that needs them.
    Best,
    /// An XDP program and `AF_XDP` sockets.
    Xdp,
    /// A packet socket with a `TPACKET_V3` ring.
    Ring,
    /// A packet socket, and a system call for each packet.
    Socket,
}

impl FromArg for Method {
    const SYNTAX: &'static str = "AF_XDP, AF_PACKET, TPACKET_V3, LINUX, PCAP, SOCKET or default";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        match text {
            // Click's names for methods that receive from the kernel's interfaces.
            "AF_PACKET" | "TPACKET_V3" | "LINUX" | "PCAP" => Ok(Method::Ring),
            "AF_XDP" | "XDP" => Ok(Method::Xdp),
            "default" => Ok(Method::Best),
            "SOCKET" => Ok(Method::Socket),
            _ => {
                Err(ArgError::new(format!("`{text}` is not {}", Self::SYNTAX)).click("bad METHOD"))
            }
        }
    }
}
