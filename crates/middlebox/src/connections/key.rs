//! The ends of a packet: addresses, ports and protocol, of either family.

use crate::headers::Headers;
use castanet_kit::flow::{Key, Tuple4, Tuple6};
use castanet_wire::{Icmp, Ipv4Header, Ipv6Header, icmp6, ip_proto, udp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Keys of connections have a zone, so that none is all zeros.
const ZONE: u16 = 1;

/// Keys of connections of one family of addresses.
pub(crate) trait Family: Key {
    /// Whether it is IPv6.
    const IS_IP6: bool;
    /// The key of such ends.
    fn of(ends: &Ends) -> Self;
    /// The ends that it is of.
    fn ends(&self) -> Ends;
    /// The key that both directions have in common, and whether this is the direction from
    /// the greater end.
    fn ordered(self) -> (Self, bool);
    /// What packets the other way look like.
    fn reversed(self) -> Self;
    /// The key of a packet of this family that has ports and is no fragment.
    fn of_packet(bytes: &[u8], headers: &Headers) -> Option<Self>;
}

impl Family for Tuple4 {
    const IS_IP6: bool = false;

    fn of(ends: &Ends) -> Tuple4 {
        let narrow = |address: IpAddr| match address {
            IpAddr::V4(address) => address,
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        };
        let (src, dst) = ((narrow(ends.src.0), ends.src.1), (narrow(ends.dst.0), ends.dst.1));
        Tuple4::new(src, dst, ends.proto).in_zone(ZONE)
    }

    fn ends(&self) -> Ends {
        let ((src, sport), (dst, dport)) = (self.src(), self.dst());
        let (src, dst) = ((src.into(), sport), (dst.into(), dport));
        Ends { is_ip6: false, src, dst, proto: self.proto() }
    }

    #[inline]
    fn ordered(self) -> (Tuple4, bool) {
        Tuple4::ordered(self)
    }

    #[inline]
    fn reversed(self) -> Tuple4 {
        Tuple4::reversed(self)
    }

    #[inline]
    fn of_packet(bytes: &[u8], headers: &Headers) -> Option<Tuple4> {
        let (ip, _) = Ipv4Header::from_prefix(bytes.get(headers.network..)?)?;
        let (sport, dport) = udp::ports(bytes.get(headers.transport..)?)?;
        Some(Tuple4::new((ip.src(), sport), (ip.dst(), dport), headers.protocol).in_zone(ZONE))
    }
}

impl Family for Tuple6 {
    const IS_IP6: bool = true;

    fn of(ends: &Ends) -> Tuple6 {
        ends.wide().in_zone(ZONE)
    }

    fn ends(&self) -> Ends {
        let ((src, sport), (dst, dport)) = (self.src(), self.dst());
        let (src, dst) = ((src.into(), sport), (dst.into(), dport));
        Ends { is_ip6: true, src, dst, proto: self.proto() }
    }

    #[inline]
    fn ordered(self) -> (Tuple6, bool) {
        Tuple6::ordered(self)
    }

    #[inline]
    fn reversed(self) -> Tuple6 {
        Tuple6::reversed(self)
    }

    fn of_packet(bytes: &[u8], headers: &Headers) -> Option<Tuple6> {
        let (ip, _) = Ipv6Header::from_prefix(bytes.get(headers.network..)?)?;
        let (sport, dport) = udp::ports(bytes.get(headers.transport..)?)?;
        Some(Tuple6::new((ip.src(), sport), (ip.dst(), dport), headers.protocol).in_zone(ZONE))
    }
}

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
    /// A key of either family, in zone 0.
    pub(super) fn wide(&self) -> Tuple6 {
        Tuple6::new((wide(self.src.0), self.src.1), (wide(self.dst.0), self.dst.1), self.proto)
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

    /// The same, without ports also of what belongs to no connection of its own.
    pub(crate) fn of_any(bytes: &[u8], headers: &Headers) -> Option<Ends> {
        Ends::of_packet(bytes, headers).or_else(|| {
            let (src, dst) = addresses(bytes.get(headers.network..)?, headers.is_ip6)?;
            let is_ip6 = headers.is_ip6;
            Some(Ends { is_ip6, src: (src, 0), dst: (dst, 0), proto: headers.protocol })
        })
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
