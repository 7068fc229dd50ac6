//! The endpoints of a packet, and their translation in place.

use super::{Direction, Endpoint};
use castanet_wire::checksum::Delta;
use castanet_wire::extension::{self, UpperLayer};
use castanet_wire::{Icmp, Ipv6Header, Udp, icmp6, ip_proto, transport};

/// The endpoints of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// The endpoint that is translated: the sender of an outward packet, the receiver of an
    /// inward one.
    pub local: Endpoint,
    /// The other endpoint.
    pub remote: Endpoint,
    /// The transport protocol.
    pub protocol: u8,
    /// Whether the packet has ports.
    pub has_ports: bool,
    /// Whether an identifier stands in place of the local port.
    pub has_id: bool,
}

/// Parses the endpoints of an IPv6 packet from its header on; of an ICMPv6 error, those of the
/// quoted packet, swapped. `None` if the packet is neither TCP, UDP, an ICMPv6 echo nor an error,
/// or is cut short.
pub fn parse_endpoints(packet: &[u8], direction: Direction) -> Option<Endpoints> {
    let (ip, upper, body) = split(packet)?;
    let (mut local, mut remote) = addresses(ip, direction);
    let mut found = |ports: Option<(u16, u16)>, id: Option<u16>| {
        (local.port, remote.port) = ports.unwrap_or_default();
        local.port = id.unwrap_or(local.port);
        let (has_ports, has_id) = (ports.is_some(), id.is_some());
        Some(Endpoints { local, remote, protocol: upper.protocol, has_ports, has_id })
    };
    match upper.protocol {
        ip_proto::TCP | ip_proto::UDP if upper.is_later_fragment() => found(None, None),
        ip_proto::TCP | ip_proto::UDP => {
            let (udp, _) = Udp::from_prefix(body)?; // TCP has its ports at the same offsets
            let ports = (udp.src_port(), udp.dst_port());
            found(
                Some(if direction == Direction::Outward { ports } else { (ports.1, ports.0) }),
                None,
            )
        }
        ip_proto::ICMPV6 if upper.is_later_fragment() => None,
        ip_proto::ICMPV6 => {
            let (icmp, quoted) = Icmp::from_prefix(body)?;
            match icmp.kind() {
                kind if icmp6::is_query(kind) => found(None, Some(icmp.id())),
                kind if icmp6::is_error(kind) => parse_endpoints(quoted, reverse(direction))
                    .filter(|_| {
                        // An error is never about an error.
                        !is_error(quoted)
                    }),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Replaces the local endpoint of a packet by `new` and updates the checksums.
pub fn rewrite(packet: &mut [u8], direction: Direction, new: Endpoint) {
    let Some((ip, upper, _)) = split(packet) else { return };
    let (start, protocol, is_later_fragment) =
        (Ipv6Header::LEN + upper.offset, upper.protocol, upper.is_later_fragment());
    let old = addresses(ip, direction).0.address;
    if let Some((ip, _)) = Ipv6Header::from_prefix_mut(packet) {
        match direction {
            Direction::Outward => ip.set_src(new.address),
            Direction::Inward => ip.set_dst(new.address),
        }
    }
    if is_later_fragment {
        return;
    }
    let delta = Delta::new().addr6(old, new.address);
    let (head, body) = packet.split_at_mut(start);
    match protocol {
        ip_proto::TCP | ip_proto::UDP => set_port(protocol, body, direction, new.port, delta),
        ip_proto::ICMPV6 => {
            let Some((icmp, quoted)) = Icmp::from_prefix_mut(body) else { return };
            if icmp6::is_query(icmp.kind()) {
                icmp.rewrite_id(new.port);
                icmp.adjust_checksum(delta);
            } else if icmp6::is_error(icmp.kind()) {
                rewrite(quoted, reverse(direction), new);
                if let Some((ip, _)) = Ipv6Header::from_prefix(head) {
                    let len = Icmp::LEN + quoted.len();
                    icmp.update_checksum_v6(ip.pseudo(ip_proto::ICMPV6, len), quoted);
                }
            }
        }
        _ => {}
    }
}

/// Sets the local port of TCP or UDP; a quoted packet may end before its checksum.
fn set_port(protocol: u8, body: &mut [u8], direction: Direction, port: u16, delta: Delta) {
    let Some((udp, _)) = Udp::from_prefix_mut(body) else { return };
    let old = if direction == Direction::Outward { udp.src_port() } else { udp.dst_port() };
    match direction {
        Direction::Outward => udp.set_src_port(port),
        Direction::Inward => udp.set_dst_port(port),
    }
    transport::adjust_checksum(protocol, body, delta.u16(old, port));
}

fn reverse(direction: Direction) -> Direction {
    match direction {
        Direction::Outward => Direction::Inward,
        Direction::Inward => Direction::Outward,
    }
}

fn split(packet: &[u8]) -> Option<(&Ipv6Header, UpperLayer, &[u8])> {
    let (ip, rest) = Ipv6Header::from_prefix(packet)?;
    let upper = extension::upper_layer(ip.next_header(), rest);
    (ip.version() == 6).then_some((ip, upper, &rest[upper.offset..]))
}

fn is_error(packet: &[u8]) -> bool {
    split(packet).is_some_and(|(_, upper, body)| {
        let message = Icmp::from_prefix(body).filter(|_| upper.protocol == ip_proto::ICMPV6);
        message.is_some_and(|(icmp, _)| icmp6::is_error(icmp.kind()))
    })
}

fn addresses(ip: &Ipv6Header, direction: Direction) -> (Endpoint, Endpoint) {
    let (src, dst) =
        (Endpoint { address: ip.src(), port: 0 }, Endpoint { address: ip.dst(), port: 0 });
    if direction == Direction::Outward { (src, dst) } else { (dst, src) }
}
