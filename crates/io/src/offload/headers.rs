//! Header offsets of a TCP or UDP frame.

use super::LinkType;
use castanet_wire::headers::frame_payload;
use castanet_wire::{Ipv4Header, Ipv6Header, Tcp, Udp, ether_type, ip_proto};

/// The IP version of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IpVersion {
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

/// Offsets of the headers of a TCP or UDP frame, in bytes from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeaderOffsets {
    pub(crate) version: IpVersion,
    pub(crate) protocol: Transport,
    /// Start of the IP header.
    pub(crate) network: usize,
    /// Start of the TCP or UDP header.
    pub(crate) transport: usize,
    /// Start of the payload.
    pub(crate) payload: usize,
}

/// Finds the headers of a frame. `None` for anything but TCP and UDP directly inside IP, which is
/// all that the kernel hands over as a super-frame without tunnels.
pub(crate) fn find_headers(frame: &[u8], link: LinkType) -> Option<HeaderOffsets> {
    let network = match link {
        LinkType::Ip => 0,
        LinkType::Ethernet => ip_offset(frame)?,
    };
    let ip = frame.get(network..)?;
    let (version, next_header, len) = match ip.first()? >> 4 {
        4 => {
            let (header, rest) = Ipv4Header::from_prefix(ip)?;
            header.split_options(rest)?;
            (IpVersion::V4, header.protocol(), header.header_len())
        }
        6 => {
            let (header, _) = Ipv6Header::from_prefix(ip)?;
            let (next_header, len) = skip_extensions(header.next_header(), ip)?;
            (IpVersion::V6, next_header, len)
        }
        _ => return None,
    };
    let transport = network + len;
    let bytes = frame.get(transport..)?;
    let (protocol, len) = match next_header {
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
    Some(HeaderOffsets { version, protocol, network, transport, payload: transport + len })
}

/// Offset of the IP header in an Ethernet frame with any number of VLAN tags.
#[inline]
pub(crate) fn ip_offset(frame: &[u8]) -> Option<usize> {
    let (kind, offset) = frame_payload(frame, usize::MAX)?;
    matches!(kind, ether_type::IPV4 | ether_type::IPV6).then_some(offset)
}

/// Walks the IPv6 extension headers (RFC 8200, section 4); returns the transport protocol and its
/// offset. Fragment headers end the walk: a super-frame cannot be a fragment.
fn skip_extensions(mut next: u8, ip: &[u8]) -> Option<(u8, usize)> {
    let mut at = Ipv6Header::LEN;
    while matches!(next, ip_proto::HOP_BY_HOP | ip_proto::ROUTING | ip_proto::DESTINATION_OPTIONS) {
        let extension = ip.get(at..)?;
        next = *extension.first()?;
        // The length field counts units of eight bytes, without the first one.
        at += (usize::from(*extension.get(1)?) + 1) * 8;
    }
    Some((next, at))
}
