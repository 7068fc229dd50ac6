//! Tuples: addresses, ports and protocol of a packet, of either address family.

use crate::headers::Headers;
use castanet_kit::flow::{Key, Tuple4, Tuple6};
use castanet_wire::{Icmp, Ipv4Header, Ipv6Header, icmp6, ip_proto, udp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Zone of all keys, so that no key is all zeros.
const ZONE: u16 = 1;

/// Table keys of one address family.
pub(crate) trait Family: Key {
    /// Whether the family is IPv6.
    const IS_IP6: bool;
    /// Converts a tuple to a key.
    fn from_tuple(tuple: &Tuple) -> Self;
    /// Converts the key to a tuple.
    fn tuple(&self) -> Tuple;
    /// Returns the key that both directions share, and whether the source is the greater end.
    fn ordered(self) -> (Self, bool);
    /// Returns the key of the opposite direction.
    fn reversed(self) -> Self;
    /// Returns the key of a packet that has ports and is not a fragment.
    fn of_packet(bytes: &[u8], headers: &Headers) -> Option<Self>;
}

impl Family for Tuple4 {
    const IS_IP6: bool = false;

    fn from_tuple(tuple: &Tuple) -> Tuple4 {
        let narrow = |address: IpAddr| match address {
            IpAddr::V4(address) => address,
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        };
        let (src, dst) = ((narrow(tuple.src.0), tuple.src.1), (narrow(tuple.dst.0), tuple.dst.1));
        Tuple4::new(src, dst, tuple.proto).in_zone(ZONE)
    }

    fn tuple(&self) -> Tuple {
        let ((src, sport), (dst, dport)) = (self.src(), self.dst());
        let (src, dst) = ((src.into(), sport), (dst.into(), dport));
        Tuple { is_ip6: false, src, dst, proto: self.proto() }
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

    fn from_tuple(tuple: &Tuple) -> Tuple6 {
        tuple.wide().in_zone(ZONE)
    }

    fn tuple(&self) -> Tuple {
        let ((src, sport), (dst, dport)) = (self.src(), self.dst());
        let (src, dst) = ((src.into(), sport), (dst.into(), dport));
        Tuple { is_ip6: true, src, dst, proto: self.proto() }
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

/// A tuple of either family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tuple {
    pub(crate) is_ip6: bool,
    pub(crate) src: (IpAddr, u16),
    pub(crate) dst: (IpAddr, u16),
    pub(crate) proto: u8,
}

/// Maps an IPv4 address into IPv6.
fn wide(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

impl Tuple {
    /// The tuple as an IPv6 key in zone 0.
    pub(super) fn wide(&self) -> Tuple6 {
        Tuple6::new((wide(self.src.0), self.src.1), (wide(self.dst.0), self.dst.1), self.proto)
    }

    /// Returns the tuple of the opposite direction.
    pub(crate) fn reversed(self) -> Tuple {
        Tuple { src: self.dst, dst: self.src, ..self }
    }

    /// Reads the tuple of a packet. Ports are zero in later fragments and for protocols without
    /// ports; ICMP queries have their identifier as both. `None` for ICMP messages that belong to
    /// no connection of their own.
    pub(crate) fn of_packet(bytes: &[u8], headers: &Headers) -> Option<Tuple> {
        let (src, dst) = addresses(bytes.get(headers.network..)?, headers.is_ip6)?;
        let upper = bytes.get(headers.transport..headers.end)?;
        let (sport, dport) = ports(upper, headers)?;
        let (src, dst) = ((src, sport), (dst, dport));
        Some(Tuple { is_ip6: headers.is_ip6, src, dst, proto: headers.protocol })
    }

    /// As [`Tuple::of_packet`], with zero ports instead of `None`.
    pub(crate) fn of_any(bytes: &[u8], headers: &Headers) -> Option<Tuple> {
        Tuple::of_packet(bytes, headers).or_else(|| {
            let (src, dst) = addresses(bytes.get(headers.network..)?, headers.is_ip6)?;
            let is_ip6 = headers.is_ip6;
            Some(Tuple { is_ip6, src: (src, 0), dst: (dst, 0), proto: headers.protocol })
        })
    }
}

/// Returns the addresses in an IP header.
pub(super) fn addresses(header: &[u8], is_ip6: bool) -> Option<(IpAddr, IpAddr)> {
    if is_ip6 {
        let (ip, _) = Ipv6Header::from_prefix(header)?;
        return Some((ip.src().into(), ip.dst().into()));
    }
    let (ip, _) = Ipv4Header::from_prefix(header)?;
    Some((ip.src().into(), ip.dst().into()))
}

/// Returns the ports; `None` for ICMP messages that belong to no connection of their own.
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
