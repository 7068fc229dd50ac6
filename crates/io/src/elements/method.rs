//! The `METHOD` argument of device elements.

use crate::af_packet;
use castanet_engine::args::{ArgError, FromArg, Names};

/// How a device element reaches its device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    /// A packet socket with a `TPACKET_V3` ring.
    Ring,
    /// A packet socket and a system call a packet.
    Socket,
}

impl Method {
    /// How to receive this way.
    pub(super) fn receiving(self) -> af_packet::Method {
        match self {
            Method::Ring => af_packet::Method::Ring,
            Method::Socket => af_packet::Method::Socket,
        }
    }
}

impl FromArg for Method {
    const SYNTAX: &'static str = "AF_PACKET, TPACKET_V3, LINUX, PCAP or SOCKET";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        match text {
            // Click's names for what receives from the kernel's interfaces.
            "AF_PACKET" | "TPACKET_V3" | "LINUX" | "PCAP" | "default" => Ok(Method::Ring),
            "SOCKET" => Ok(Method::Socket),
            _ => {
                Err(ArgError::new(format!("`{text}` is not {}", Self::SYNTAX)).click("bad METHOD"))
            }
        }
    }
}
