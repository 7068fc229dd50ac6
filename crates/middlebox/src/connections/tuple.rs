//! The tuple of a packet, by its headers.

use crate::field::Layer;
use crate::headers::Headers;
use castanet_kit::conntrack::{Address, Tuple};
use castanet_wire::{Icmp, icmp, icmp6, ip_proto, udp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;

/// Reads the tuple of a packet. Ports are zero in later fragments and for protocols without ports;
/// ICMP queries have their identifier as both. `None` for ICMP messages that belong to no
/// connection of their own.
pub(crate) fn read_tuple(bytes: &[u8], headers: &Headers) -> Option<Tuple> {
    let (src, dst) = addresses(bytes, headers)?;
    let (sport, dport) = ports(bytes.get(headers.transport..headers.end)?, headers)?;
    Some(Tuple { src: (src, sport), dst: (dst, dport), proto: headers.protocol })
}

/// Whether a packet can belong to a connection of its own: all but ICMP messages without an identifier.
pub(crate) fn has_own_tuple(bytes: &[u8], headers: &Headers) -> bool {
    read_tuple(bytes, headers).is_some()
}

/// As [`read_tuple`], with zero ports instead of `None`.
pub(crate) fn read_any_tuple(bytes: &[u8], headers: &Headers) -> Option<Tuple> {
    read_tuple(bytes, headers).or_else(|| {
        let (src, dst) = addresses(bytes, headers)?;
        Some(Tuple { src: (src, 0), dst: (dst, 0), proto: headers.protocol })
    })
}

/// Returns the addresses in the IP header.
pub(crate) fn addresses(bytes: &[u8], headers: &Headers) -> Option<(IpAddr, IpAddr)> {
    fn read<A: Address>(header: &[u8]) -> Option<(IpAddr, IpAddr)> {
        A::of_header(header).map(|(src, dst)| (src.into(), dst.into()))
    }
    let header = bytes.get(headers.network..)?;
    if headers.is_ip6 { read::<Ipv6Addr>(header) } else { read::<Ipv4Addr>(header) }
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

/// Offset of the quoted packet in an ICMP error.
pub(super) type QuotedOffset = Option<NonZeroU32>;

/// Returns the tuple of a packet; for an ICMP error that of the quoted packet, and its offset.
pub(super) fn packet_tuple(bytes: &[u8], headers: &Headers) -> Option<(Tuple, QuotedOffset)> {
    let Some(at) = quoted(bytes, headers) else {
        return Some((read_tuple(bytes, headers)?, None));
    };
    let bytes = bytes.get(..headers.end)?;
    let inner = Headers::quoted(bytes, at)?;
    Some((read_tuple(bytes, &inner)?, NonZeroU32::new(at as u32)))
}

/// The tuple of a packet that begins a connection; `None` if it can begin none.
pub(super) fn original_tuple(bytes: &[u8], headers: &Headers) -> Option<Tuple> {
    packet_tuple(bytes, headers).filter(|(_, quoted)| quoted.is_none()).map(|(tuple, _)| tuple)
}

/// Whether the packet is an ICMP error, which quotes another packet.
pub(crate) fn quotes(bytes: &[u8], headers: &Headers) -> bool {
    quoted(bytes, headers).is_some()
}

/// Returns the offset of the packet that an ICMP error quotes.
fn quoted(bytes: &[u8], headers: &Headers) -> Option<usize> {
    if headers.is_later_fragment || !matches!(headers.upper, Layer::Icmp | Layer::Icmp6) {
        return None;
    }
    let (message, _) = Icmp::from_prefix(bytes.get(headers.transport..)?)?;
    let is_error = match headers.is_ip6 {
        false => icmp::is_error(message.kind()),
        true => icmp6::is_error(message.kind()),
    };
    is_error.then_some(headers.transport + Icmp::LEN)
}
