//! Where the headers of a super-frame start.

use super::Link;
use castanet_wire::{Ethernet, Ipv4Header, Ipv6Header, Tcp, Udp, Vlan, ether_type, ip_proto};

/// The IP version of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// The transport protocol of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Offsets of the headers of a TCP or UDP frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layers {
    pub(crate) version: Version,
    pub(crate) transport: Transport,
    /// Where the IP header starts.
    pub(crate) network: usize,
    /// Where the transport header starts.
    pub(crate) header: usize,
    /// Where the payload starts.
    pub(crate) payload: usize,
}

/// Finds the headers; `None` for anything but TCP and UDP right inside IP,
/// which is all that the kernel hands over as a super-frame without tunnels.
pub(crate) fn find(frame: &[u8], link: Link) -> Option<Layers> {
    let network = match link {
        Link::Ip => 0,
        Link::Ethernet => network_offset(frame)?,
    };
    let ip = frame.get(network..)?;
    let (version, protocol, len) = match ip.first()? >> 4 {
        4 => {
            let (header, rest) = Ipv4Header::from_prefix(ip)?;
            header.split_options(rest)?;
            (Version::V4, header.protocol(), header.header_len())
        }
        6 => {
            let (header, _) = Ipv6Header::from_prefix(ip)?;
            let (protocol, len) = skip_extensions(header.next_header(), ip)?;
            (Version::V6, protocol, len)
        }
        _ => return None,
    };
    let header = network + len;
    let bytes = frame.get(header..)?;
    let (transport, len) = match protocol {
        ip_proto::TCP => {
            let (tcp, rest) = Tcp::from_prefix(bytes)?;
            tcp.split_options(rest)?;
            (Transport::Tcp, tcp.header_len())
        }
        ip_proto::UDP => {
            Udp::from_prefix(bytes)?;
            (Transport::Udp, Udp::LEN)
        }
        _ => return None,
    };
    Some(Layers { version, transport, network, header, payload: header + len })
}

/// Where IP starts in an Ethernet frame with any number of tags.
fn network_offset(frame: &[u8]) -> Option<usize> {
    let (header, _) = Ethernet::from_prefix(frame)?;
    let (mut kind, mut at) = (header.ether_type(), Ethernet::LEN);
    while matches!(kind, ether_type::VLAN | ether_type::QINQ) {
        let (tag, _) = Vlan::from_prefix(frame.get(at..)?)?;
        (kind, at) = (tag.ether_type(), at + Vlan::LEN);
    }
    matches!(kind, ether_type::IPV4 | ether_type::IPV6).then_some(at)
}

/// Walks the extension headers of IPv6 (RFC 8200, 4) to the transport
/// protocol and its offset. A super-frame cannot be a fragment.
fn skip_extensions(mut next: u8, ip: &[u8]) -> Option<(u8, usize)> {
    let mut at = Ipv6Header::LEN;
    while matches!(next, ip_proto::HOP_BY_HOP | ip_proto::ROUTING | ip_proto::DESTINATION_OPTIONS) {
        let extension = ip.get(at..)?;
        next = *extension.first()?;
        // Its length counts units of eight bytes, the first one not.
        at += (usize::from(*extension.get(1)?) + 1) * 8;
    }
    Some((next, at))
}
