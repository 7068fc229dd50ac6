//! Rewrites packets by the mapping of their connection, in both directions.

use super::tuple::{Tuple, addresses};
use crate::field::Layer;
use crate::headers::Headers;
use crate::rewrite::{FieldBits, PacketRewriter, put};
use castanet_kit::flow::Tuple4;
use castanet_wire::checksum::{Delta, Sum};
use castanet_wire::tcp::flag;
use castanet_wire::{Icmp, Ipv4Header, Ipv6Header, Tcp, Udp, bits, ip_proto, transport, udp};
use std::net::IpAddr;

/// Direction of a packet in its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// The direction of the packet that created the connection.
    Original,
    /// The opposite direction.
    Reply,
}

impl Direction {
    /// The other way.
    pub(super) fn opposite(self) -> Direction {
        match self {
            Direction::Original => Direction::Reply,
            Direction::Reply => Direction::Original,
        }
    }
}

/// Offsets that are added to fields of packets, modulo their size.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Offsets {
    /// Offset of sequence numbers in the original direction.
    pub(super) seq: u32,
    /// Offset of sequence numbers in the reply direction, which the original direction
    /// acknowledges.
    pub(super) ack: u32,
    /// Offset of IPv4 identifications in the original direction.
    pub(super) id: u16,
    /// Fixed IPv4 identification in the original direction.
    pub(super) fixed_id: Option<u16>,
    /// IPv6 flow label in the original direction.
    pub(super) label: Option<u32>,
}

/// Rewrite of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mapping {
    pub(super) direction: Direction,
    /// The tuple of the packet, and the one that it gets.
    pub(super) tuples: (Tuple, Tuple),
    pub(super) offsets: Offsets,
    /// Offset of the packet with these tuples, if an ICMP error quotes it.
    pub(super) quoted: Option<usize>,
}

const SRC4: FieldBits = FieldBits::new(Layer::Ip4, Ipv4Header::SRC, 32).in_pseudo();
const DST4: FieldBits = FieldBits::new(Layer::Ip4, Ipv4Header::DST, 32).in_pseudo();
const ID4: FieldBits = FieldBits::new(Layer::Ip4, Ipv4Header::ID, 16);
const SRC6: FieldBits = FieldBits::new(Layer::Ip6, Ipv6Header::SRC, 128).in_pseudo();
const DST6: FieldBits = FieldBits::new(Layer::Ip6, Ipv6Header::DST, 128).in_pseudo();
const LABEL: FieldBits = FieldBits::new(Layer::Ip6, 0, 20).later(12);
const TCP_PORTS: [FieldBits; 2] =
    [FieldBits::new(Layer::Tcp, Tcp::SRC_PORT, 16), FieldBits::new(Layer::Tcp, Tcp::DST_PORT, 16)];
const UDP_PORTS: [FieldBits; 2] =
    [FieldBits::new(Layer::Udp, Udp::SRC_PORT, 16), FieldBits::new(Layer::Udp, Udp::DST_PORT, 16)];
const ICMP_ID: FieldBits = FieldBits::new(Layer::Icmp, Icmp::ID, 16);
const ICMP6_ID: FieldBits = FieldBits::new(Layer::Icmp6, Icmp::ID, 16);
const SEQ: FieldBits = FieldBits::new(Layer::Tcp, Tcp::SEQ, 32);
const ACK: FieldBits = FieldBits::new(Layer::Tcp, Tcp::ACK, 32);

/// Writes another tuple into a whole IPv4 packet of TCP or UDP.
#[inline]
pub(crate) fn rewrite_tuple4(bytes: &mut [u8], headers: &Headers, to: &Tuple4) -> Option<()> {
    let (ip, _) = Ipv4Header::from_prefix_mut(bytes.get_mut(headers.network..)?)?;
    let ((src, sport), (dst, dport)) = (to.src(), to.dst());
    let addresses = Delta::new().addr(ip.src(), src).addr(ip.dst(), dst);
    ip.set_src(src);
    ip.set_dst(dst);
    ip.adjust_checksum(addresses);
    let segment = bytes.get_mut(headers.transport..headers.end)?;
    let old = udp::ports(segment)?;
    transport::set_ports(segment, sport, dport);
    let delta = addresses.u16(old.0, sport).u16(old.1, dport);
    transport::adjust_checksum(headers.protocol, segment, delta);
    Some(())
}

impl Mapping {
    /// Rewrites the packet.
    pub(crate) fn apply(&self, rewriter: &mut PacketRewriter) {
        match self.quoted {
            Some(at) => self.apply_quoted(rewriter, at),
            None => self.apply_direct(rewriter),
        }
    }

    fn apply_direct(&self, rewriter: &mut PacketRewriter) {
        let (from, to) = self.tuples;
        let headers = rewriter.headers;
        if from != to {
            let bytes = rewriter.packet.bytes_mut();
            address(bytes, &headers, [SRC4, SRC6], from.src.0, to.src.0);
            address(bytes, &headers, [DST4, DST6], from.dst.0, to.dst.0);
            ports(bytes, &headers, (from.src.1, from.dst.1), (to.src.1, to.dst.1));
        }
        if self.offsets == Offsets::default() {
            return;
        }
        let Offsets { seq, ack, id, fixed_id, label } = self.offsets;
        let forward = self.direction == Direction::Original;
        let bytes = rewriter.packet.bytes_mut();
        if forward {
            let id = |old: u128| fixed_id.map_or(old + u128::from(id), u128::from);
            put(bytes, &headers, ID4, id);
            put(bytes, &headers, LABEL, |old| label.map_or(old, u128::from));
        }
        let (sent, seen) = if forward { (seq, ack) } else { (ack, seq) };
        put(bytes, &headers, SEQ, |old| old + u128::from(sent));
        if seen != 0 && headers.tcp_flags(bytes) & flag::ACK != 0 {
            let back = seen.wrapping_neg();
            put(bytes, &headers, ACK, |old| old + u128::from(back));
            rewriter.shift_sack(back);
        }
    }

    /// Rewrites an ICMP error: the quoted packet, and the address of the error that belongs to it.
    /// The checksum is updated.
    fn apply_quoted(&self, rewriter: &mut PacketRewriter, at: usize) {
        let (from, to) = self.tuples;
        if from == to {
            return;
        }
        let headers = rewriter.headers;
        let bytes = rewriter.packet.bytes_mut();
        let Some(quoted) = Headers::quoted(&bytes[..headers.end], at) else { return };
        let before = Sum::new().slice(&bytes[at..headers.end]);
        address(bytes, &quoted, [SRC4, SRC6], from.src.0, to.src.0);
        address(bytes, &quoted, [DST4, DST6], from.dst.0, to.dst.0);
        quoted_ports(bytes, &quoted, &from, &to);
        let after = Sum::new().slice(&bytes[at..headers.end]);
        rewriter.adjust_upper_checksum(Delta::new().sum(before, after));
        let bytes = rewriter.packet.bytes_mut();
        let ends = addresses(&bytes[headers.network..], headers.is_ip6);
        // The error goes to the source of the quoted packet; its sender may be the destination
        // itself.
        if ends.is_some_and(|(_, dst)| dst == from.src.0) {
            address(bytes, &headers, [DST4, DST6], from.src.0, to.src.0);
        }
        if ends.is_some_and(|(src, _)| src == from.dst.0) {
            address(bytes, &headers, [SRC4, SRC6], from.dst.0, to.dst.0);
        }
    }
}

/// Replaces an address of either family.
fn address(
    bytes: &mut [u8],
    headers: &Headers,
    field_bits: [FieldBits; 2],
    from: IpAddr,
    to: IpAddr,
) {
    if from != to {
        match to {
            IpAddr::V4(to) => put(bytes, headers, field_bits[0], |_| to.to_bits().into()),
            IpAddr::V6(to) => put(bytes, headers, field_bits[1], |_| to.to_bits()),
        }
    }
}

/// Replaces the ports, or the ICMP identifier.
fn ports(bytes: &mut [u8], headers: &Headers, from: (u16, u16), to: (u16, u16)) {
    let pairs = match headers.upper {
        Layer::Tcp => TCP_PORTS,
        Layer::Udp => UDP_PORTS,
        Layer::Icmp => return rewrite_u16(bytes, headers, ICMP_ID, from.0, to.0),
        Layer::Icmp6 => return rewrite_u16(bytes, headers, ICMP6_ID, from.0, to.0),
        _ => return,
    };
    rewrite_u16(bytes, headers, pairs[0], from.0, to.0);
    rewrite_u16(bytes, headers, pairs[1], from.1, to.1);
}

fn rewrite_u16(bytes: &mut [u8], headers: &Headers, field_bits: FieldBits, from: u16, to: u16) {
    if from != to {
        put(bytes, headers, field_bits, |_| to.into());
    }
}

/// Replaces the ports of a quoted packet. A quote of only eight bytes of transport header (RFC 792)
/// lacks the TCP checksum, which then is not updated.
fn quoted_ports(bytes: &mut [u8], quoted: &Headers, from: &Tuple, to: &Tuple) {
    if quoted.upper != Layer::Any {
        return ports(bytes, quoted, (from.src.1, from.dst.1), (to.src.1, to.dst.1));
    }
    let has_ports = matches!(from.proto, ip_proto::TCP | ip_proto::UDP);
    if has_ports && !quoted.is_later_fragment {
        let upper = &mut bytes[quoted.transport..];
        bits::set(upper, Tcp::SRC_PORT * 8, 16, to.src.1.into());
        bits::set(upper, Tcp::DST_PORT * 8, 16, to.dst.1.into());
    }
}
