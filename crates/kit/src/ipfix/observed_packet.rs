//! A packet as a metering process sees it: the key of its flow, and its share of the counts.

use crate::conntrack::{Address, Tuple4, Tuple6, TupleKey};
use castanet_wire::headers::Layer;
use castanet_wire::{Headers, Icmp, Ipv4Header, Ipv6Header, ip_proto, udp};

/// The key of a flow, with the VLAN as its zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FlowKey {
    Ip4(Tuple4),
    Ip6(Tuple6),
}

/// A packet of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObservedPacket {
    pub(super) key: FlowKey,
    /// Bytes of the IP packet, with its header.
    pub(super) octets: u64,
    pub(super) tcp_flags: u8,
    /// Type of service, or traffic class.
    pub(super) class: u8,
}

impl ObservedPacket {
    /// The packet whose IP header is at `network` in `bytes`, of which `cut` more bytes were
    /// captured off. `None` without a whole IP header. Later fragments, and packets whose transport
    /// header is cut short, have ports 0.
    #[inline]
    pub fn of(bytes: &[u8], network: usize, cut: usize, vlan: u16) -> Option<ObservedPacket> {
        let headers = match Headers::plain(bytes, network) {
            Some(headers) => headers,
            None => Headers::of(bytes, network)?,
        };
        let rest = bytes.get(network..)?;
        let (key, class, claimed) = if headers.is_ip6 {
            let (ip, _) = Ipv6Header::from_prefix(rest)?;
            let claimed = Ipv6Header::LEN + usize::from(ip.payload_len());
            let key = FlowKey::Ip6(key(bytes, &headers, vlan)?);
            (key, ip.traffic_class(), claimed)
        } else {
            let (ip, _) = Ipv4Header::from_prefix(rest)?;
            (FlowKey::Ip4(key(bytes, &headers, vlan)?), ip.tos(), usize::from(ip.total_len()))
        };
        let is_cut = headers.end == bytes.len() && cut > 0;
        let len = headers.end - network;
        let octets = if is_cut { claimed.clamp(len, len + cut) } else { len };
        let tcp_flags = headers.tcp_flags(bytes);
        Some(ObservedPacket { key, octets: octets as u64, tcp_flags, class })
    }
}

#[inline]
fn key<A: Address>(bytes: &[u8], headers: &Headers, vlan: u16) -> Option<TupleKey<A>> {
    let (src, dst) = A::of_header(bytes.get(headers.network..)?)?;
    let segment = bytes.get(headers.transport..headers.end).unwrap_or_default();
    let (sport, dport) = match headers.upper {
        _ if headers.is_later_fragment => (0, 0),
        Layer::Tcp | Layer::Udp => udp::ports(segment).unwrap_or_default(),
        Layer::Icmp | Layer::Icmp6 => {
            let message = Icmp::from_prefix(segment);
            (0, message.map_or(0, |(icmp, _)| u16::from_be_bytes([icmp.kind(), icmp.code()])))
        }
        _ if has_ports(headers.protocol) => udp::ports(segment).unwrap_or_default(),
        _ => (0, 0),
    };
    Some(TupleKey::new((src, sport), (dst, dport), headers.protocol).in_zone(vlan))
}

/// Whether the header of a protocol begins with two ports.
fn has_ports(protocol: u8) -> bool {
    use ip_proto::{DCCP, SCTP, TCP, UDP, UDP_LITE};
    matches!(protocol, TCP | UDP | UDP_LITE | SCTP | DCCP)
}
