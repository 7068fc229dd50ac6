//! What a connection changes in its packets, each way.

use super::key::{Ends, addresses};
use crate::field::Layer;
use crate::headers::Headers;
use crate::rewrite::{Rewriting, Spot, put};
use castanet_kit::flow::Tuple4;
use castanet_wire::checksum::{Delta, Sum};
use castanet_wire::tcp::flag;
use castanet_wire::{Icmp, Ipv4Header, Ipv6Header, Tcp, Udp, bits, ip_proto, transport, udp};
use std::net::IpAddr;

/// Which way a packet of a connection goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// As the packet that began it.
    Forward,
    /// The other way.
    Reverse,
}

impl Direction {
    /// The other way.
    pub(super) fn opposite(self) -> Direction {
        match self {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        }
    }
}

/// By how much numbers in a connection's packets are shifted, modulo their size.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Shifts {
    /// Sequence numbers forward, and what acknowledges them back.
    pub(super) seq: u32,
    /// Sequence numbers in reverse, back again in what acknowledges them forward.
    pub(super) ack: u32,
    /// Identifications of IPv4 forward.
    pub(super) id: u16,
    /// The identification of IPv4 forward.
    pub(super) fixed_id: Option<u16>,
    /// The flow label of IPv6 forward.
    pub(super) label: Option<u32>,
}

/// What becomes of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mapped {
    pub(super) direction: Direction,
    /// Its ends as they are, and as they become.
    pub(super) ends: (Ends, Ends),
    pub(super) shifts: Shifts,
    /// Where the packet begins whose ends these are: in an ICMP error the one that
    /// it quotes.
    pub(super) quoted: Option<usize>,
}

const SRC4: Spot = Spot::new(Layer::Ip4, Ipv4Header::SRC, 32).in_pseudo();
const DST4: Spot = Spot::new(Layer::Ip4, Ipv4Header::DST, 32).in_pseudo();
const ID4: Spot = Spot::new(Layer::Ip4, Ipv4Header::ID, 16);
const SRC6: Spot = Spot::new(Layer::Ip6, Ipv6Header::SRC, 128).in_pseudo();
const DST6: Spot = Spot::new(Layer::Ip6, Ipv6Header::DST, 128).in_pseudo();
const LABEL: Spot = Spot::new(Layer::Ip6, 0, 20).later(12);
const TCP_PORTS: [Spot; 2] =
    [Spot::new(Layer::Tcp, Tcp::SRC_PORT, 16), Spot::new(Layer::Tcp, Tcp::DST_PORT, 16)];
const UDP_PORTS: [Spot; 2] =
    [Spot::new(Layer::Udp, Udp::SRC_PORT, 16), Spot::new(Layer::Udp, Udp::DST_PORT, 16)];
const ICMP_ID: Spot = Spot::new(Layer::Icmp, Icmp::ID, 16);
const ICMP6_ID: Spot = Spot::new(Layer::Icmp6, Icmp::ID, 16);
const SEQ: Spot = Spot::new(Layer::Tcp, Tcp::SEQ, 32);
const ACK: Spot = Spot::new(Layer::Tcp, Tcp::ACK, 32);

/// Puts other ends into a whole packet of IPv4, of TCP or UDP.
#[inline]
pub(crate) fn exchange(bytes: &mut [u8], headers: &Headers, to: &Tuple4) -> Option<()> {
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

impl Mapped {
    /// Changes the packet.
    pub(crate) fn apply(&self, changing: &mut Rewriting) {
        match self.quoted {
            Some(at) => self.apply_quoted(changing, at),
            None => self.apply_plain(changing),
        }
    }

    fn apply_plain(&self, changing: &mut Rewriting) {
        let (from, to) = self.ends;
        let headers = changing.headers;
        if from != to {
            let bytes = changing.packet.bytes_mut();
            address(bytes, &headers, [SRC4, SRC6], from.src.0, to.src.0);
            address(bytes, &headers, [DST4, DST6], from.dst.0, to.dst.0);
            ports(bytes, &headers, (from.src.1, from.dst.1), (to.src.1, to.dst.1));
        }
        if self.shifts == Shifts::default() {
            return;
        }
        let Shifts { seq, ack, id, fixed_id, label } = self.shifts;
        let forward = self.direction == Direction::Forward;
        let bytes = changing.packet.bytes_mut();
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
            changing.shift_sack(back);
        }
    }

    /// Changes an ICMP error: the packet that it quotes, and the address that has to
    /// do with that; its checksum follows.
    fn apply_quoted(&self, changing: &mut Rewriting, at: usize) {
        let (from, to) = self.ends;
        if from == to {
            return;
        }
        let headers = changing.headers;
        let bytes = changing.packet.bytes_mut();
        let Some(quoted) = Headers::quoted(&bytes[..headers.end], at) else { return };
        let before = Sum::new().slice(&bytes[at..headers.end]);
        address(bytes, &quoted, [SRC4, SRC6], from.src.0, to.src.0);
        address(bytes, &quoted, [DST4, DST6], from.dst.0, to.dst.0);
        quoted_ports(bytes, &quoted, &from, &to);
        let after = Sum::new().slice(&bytes[at..headers.end]);
        changing.mend_upper(Delta::new().sum(before, after));
        let bytes = changing.packet.bytes_mut();
        let ends = addresses(&bytes[headers.network..], headers.is_ip6);
        // Who quotes it answers to its source; it may be its destination itself.
        if ends.is_some_and(|(_, dst)| dst == from.src.0) {
            address(bytes, &headers, [DST4, DST6], from.src.0, to.src.0);
        }
        if ends.is_some_and(|(src, _)| src == from.dst.0) {
            address(bytes, &headers, [SRC4, SRC6], from.dst.0, to.dst.0);
        }
    }
}

/// Exchanges an address of either family.
fn address(bytes: &mut [u8], headers: &Headers, spots: [Spot; 2], from: IpAddr, to: IpAddr) {
    if from != to {
        match to {
            IpAddr::V4(to) => put(bytes, headers, spots[0], |_| to.to_bits().into()),
            IpAddr::V6(to) => put(bytes, headers, spots[1], |_| to.to_bits()),
        }
    }
}

/// Exchanges ports, or an identifier of ICMP.
fn ports(bytes: &mut [u8], headers: &Headers, from: (u16, u16), to: (u16, u16)) {
    let pairs = match headers.upper {
        Layer::Tcp => TCP_PORTS,
        Layer::Udp => UDP_PORTS,
        Layer::Icmp => return changed(bytes, headers, ICMP_ID, from.0, to.0),
        Layer::Icmp6 => return changed(bytes, headers, ICMP6_ID, from.0, to.0),
        _ => return,
    };
    changed(bytes, headers, pairs[0], from.0, to.0);
    changed(bytes, headers, pairs[1], from.1, to.1);
}

fn changed(bytes: &mut [u8], headers: &Headers, spot: Spot, from: u16, to: u16) {
    if from != to {
        put(bytes, headers, spot, |_| to.into());
    }
}

/// Exchanges the ports of a quoted packet. Where no more of its transport header is
/// there than RFC 792 asks for, its checksum is not, or nobody's business.
fn quoted_ports(bytes: &mut [u8], quoted: &Headers, from: &Ends, to: &Ends) {
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
