//! `RawSocket`: whole IPv4 packets, by a socket of the host.

use super::ip_mark;
use super::socket_element::{SocketCore, impl_socket_element};
use crate::socket::{SocketAddress, SocketConfig, Transport};
use castanet_element::prelude::*;
use std::net::SocketAddrV4;

/// Sends and receives whole IPv4 packets of a protocol by a raw socket.
///
/// TYPE is `TCP`, `UDP`, `ICMP`, `GRE` or another protocol's number. Packets do
/// not flow through: those that come in are sent, to their destination, and a
/// copy of each such packet that the host receives comes out. With PORT the
/// host leaves that TCP or UDP port alone. This takes the right to open raw
/// sockets.
///
/// ```text
/// RawSocket(UDP, 53) -> IPPrint -> Discard;
/// ```
#[derive(Element)]
#[element(args = RawSocketArgs, ports = "0-1/0-1", gives = "ip")]
#[element(alias = "FromRawSocket", alias = "ToRawSocket")]
pub struct RawSocket(SocketCore);

/// What can be set.
#[derive(Args)]
pub struct RawSocketArgs {
    /// `TCP`, `UDP`, `ICMP`, `GRE` or a protocol's number.
    #[arg]
    r#type: String,
    /// The port of TCP or UDP that nobody else may have.
    #[arg(default = 0)]
    port: u16,
    /// The most bytes of a packet that is received.
    #[arg(keyword, default = 2048, range = 20..)]
    snaplen: u32,
    /// Room in front of packets that are received.
    #[arg(keyword, default = 28, range = ..=65535)]
    headroom: u32,
}

impl Build for RawSocket {
    type Args = RawSocketArgs;

    fn build(settings: RawSocketArgs, setup: &Setup) -> Result<Self, ArgError> {
        let protocol = match settings.r#type.to_ascii_lowercase().as_str() {
            "icmp" => Some(1),
            "tcp" => Some(6),
            "udp" => Some(17),
            "gre" => Some(47),
            number => number.parse().ok(),
        };
        let wrong = || ArgError::new(format!("`{}` is no IP protocol", settings.r#type)).at("TYPE");
        let place = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, settings.port);
        Ok(RawSocket(SocketCore {
            label: format!("{} :: RawSocket", setup.name),
            name: setup.name.to_owned(),
            verbose: true,
            fit: mark,
            config: SocketConfig {
                snaplen: settings.snaplen as usize,
                headroom: settings.headroom as usize,
                ..SocketConfig::new(
                    Transport::Raw(protocol.ok_or_else(wrong)?),
                    SocketAddress::Ip(place),
                )
            },
        }))
    }
}

/// Marks what is an IPv4 packet, the only thing that goes on.
fn mark(packet: &mut Packet) -> bool {
    let is_ip = ip_mark::mark_at(packet, 0);
    if let Some(dst) = packet.ipv4_header().map(|ip| ip.dst()) {
        packet.set_dst(dst);
    }
    is_ip
}

impl_socket_element!(RawSocket);
