//! `RawSocket`: sends and receives IPv4 packets by a raw socket.

use super::duplex::impl_duplex;
use super::ip_mark;
use super::socket_element::SocketCore;
use crate::socket::{SocketAddress, SocketConfig, Transport};
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use std::net::SocketAddrV4;

/// Sends and receives whole IPv4 packets of a protocol by a raw socket.
///
/// TYPE is `TCP`, `UDP`, `ICMP`, `GRE` or another protocol's number. Packets do
/// not pass through the element: it sends its input to the packets' destinations,
/// and emits a copy of each packet of the protocol that the host receives. With PORT
/// no program of the host can use that TCP or UDP port. The process needs the right
/// to open raw sockets (`CAP_NET_RAW`).
///
/// ```text
/// RawSocket(UDP, 53) -> IPPrint -> Discard;
/// ```
#[derive(Element)]
#[element(args = RawSocketArgs, ports = "0-1/0-1", gives = "ip")]
#[element(alias = "FromRawSocket", alias = "ToRawSocket")]
pub struct RawSocket(SocketCore);

/// The arguments of `RawSocket`.
#[derive(Args)]
pub struct RawSocketArgs {
    /// `TCP`, `UDP`, `ICMP`, `GRE` or a protocol's number.
    #[arg]
    r#type: String,
    /// The TCP or UDP port that no other program may use; 0 for none.
    #[arg(default = 0)]
    port: u16,
    /// The longest packet to receive, in bytes.
    #[arg(keyword, default = 2048, range = 20..)]
    snaplen: u32,
    /// Number of free bytes before received packets.
    #[arg(keyword, default = 28, range = ..=65535)]
    headroom: u32,
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &RawSocketArgs| {
        let name = format!("raw IP, {}", it.r#type);
        vec![
            Resource::new(ResourceKind::Socket, name, "receives and sends such packets"),
            Resource::capability("CAP_NET_RAW", "opens a raw socket"),
        ]
    })
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

/// Marks the IP header of a received packet; whether the packet is IP and may be emitted.
fn mark(packet: &mut Packet) -> bool {
    let is_ip = ip_mark::mark_at(packet, 0);
    if let Some(dst) = packet.ipv4_header().map(|ip| ip.dst()) {
        packet.set_dst(dst);
    }
    is_ip
}

impl_duplex!(RawSocket(SocketCore));
