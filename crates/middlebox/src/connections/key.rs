//! The ends of a packet: addresses, ports and protocol, of either family.

use crate::headers::Headers;
use castanet_kit::flow::Tuple6;
use castanet_wire::{Icmp, Ipv4Header, Ipv6Header, icmp6, ip_proto, udp};
use std::net::{IpAddr, Ipv6Addr};

/// Keys of IPv4 and IPv6 have zones of their own: in the one, addresses are mapped.
const ZONES: [u16; 2] = [4, 6];

/// The ends of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ends {
    pub(crate) is_ip6: bool,
    pub(crate) src: (IpAddr, u16),
    pub(crate) dst: (IpAddr, u16),
    pub(crate) proto: u8,
}

/// An IPv4 address as part of IPv6's.
fn wide(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

impl Ends {
    /// The key that leads to a connection.
    pub(crate) fn tuple(&self) -> Tuple6 {
        let (src, dst) = ((wide(self.src.0), self.src.1), (wide(self.dst.0), self.dst.1));
        Tuple6::new(src, dst, self.proto).in_zone(ZONES[usize::from(self.is_ip6)])
    }

    /// The ends that a key is of; that it is of IPv6, somebody has to say.
    pub(crate) fn of(tuple: Tuple6, is_ip6: bool) -> Ends {
        let narrow = |address: Ipv6Addr| match address.to_ipv4_mapped() {
            Some(address) if !is_ip6 => IpAddr::V4(address),
            _ => IpAddr::V6(address),
        };
        let ((src, sport), (dst, dport)) = (tuple.src(), tuple.dst());
        Ends { is_ip6, src: (narrow(src), sport), dst: (narrow(dst), dport), proto: tuple.proto() }
    }

    /// Those of packets the other way.
    pub(crate) fn reversed(self) -> Ends {
        Ends { src: self.dst, dst: self.src, ..self }
    }

    /// The ends of a packet, as far as they are in it: a later fragment has no
    /// ports, what carries no ports has zeros, ICMP its identifier for both.
    pub(crate) fn of_packet(bytes: &[u8], headers: &Headers) -> Option<Ends> {
        let (src, dst) = addresses(bytes.get(headers.network..)?, headers.is_ip6)?;
        let upper = bytes.get(headers.transport..headers.end)?;
        let (sport, dport) = ports(upper, headers)?;
        let (src, dst) = ((src, sport), (dst, dport));
        Some(Ends { is_ip6: headers.is_ip6, src, dst, proto: headers.protocol })
    }
}

/// Source and destination, as an IP header has them.
pub(super) fn addresses(header: &[u8], is_ip6: bool) -> Option<(IpAddr, IpAddr)> {
    if is_ip6 {
        let (ip, _) = Ipv6Header::from_prefix(header)?;
        return Some((ip.src().into(), ip.dst().into()));
    }
    let (ip, _) = Ipv4Header::from_prefix(header)?;
    Some((ip.src().into(), ip.dst().into()))
}

/// The ports of what an IP packet carries; nothing for ICMP that belongs to no
/// connection of its own.
fn ports(upper: &[u8], headers: &Headers) -> Option<(u16, u16)> {
    if headers.is_later_fragment {
        return Some((0, 0));
    }
    match (headers.protocol, headers.is_ip6) {
        (ip_proto::TCP | ip_proto::UDP, _) => udp::ports(upper),
        (ip_proto::ICMP, false) | (ip_proto::ICMPV6, true) => {
            let (icmp, _) = Icmp::from_prefix(upper)?;
            let has_identifier = match headers.is_ip6 {
                true => icmp6::is_query(icmp.kind()),
                false => icmp.is_query(),
            };
            has_identifier.then(|| (icmp.id(), icmp.id()))
        }
        _ => Some((0, 0)),
    }
}
