//! The kinds of rewriters and the keys by which each tells flows apart.

use super::pattern::Pattern;
use crate::conntrack::Tuple4;
use castanet_wire::{Icmp, Ipv4Header, icmp, ip_proto, transport, udp};
use std::net::Ipv4Addr;

/// The class of a rewriter, by the parts of a packet that make up its flow's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriterKind {
    /// Addresses and ports of TCP and UDP, with connection states for TCP (`IPRewriter`).
    TcpUdp,
    /// Addresses and ports of TCP (`TCPRewriter`).
    Tcp,
    /// Addresses and ports of any protocol with ports, without TCP states (`UDPRewriter`).
    Udp,
    /// Source addresses (`IPAddrRewriter`).
    SourceAddress,
    /// Pairs of addresses (`IPAddrPairRewriter`).
    AddressPair,
    /// Addresses and identifiers of ICMP echoes (`ICMPPingRewriter`).
    IcmpEcho,
}

/// The endpoint in keys that have only one.
const NO_ENDPOINT: (Ipv4Addr, u16) = (Ipv4Addr::UNSPECIFIED, 0);

impl RewriterKind {
    /// The key of a packet and whether the packet may open a mapping; `None` for packets that are
    /// not rewritten. Echo replies have a key but open no mapping.
    #[inline]
    pub fn key(self, ip: &Ipv4Header, segment: &[u8]) -> Option<(Tuple4, bool)> {
        let (src, dst, protocol) = (ip.src(), ip.dst(), ip.protocol());
        match self {
            RewriterKind::SourceAddress => Some((Tuple4::new((src, 0), NO_ENDPOINT, 0), true)),
            RewriterKind::AddressPair => Some((Tuple4::new((src, 0), (dst, 0), 0), true)),
            _ if !ip.is_first_fragment() || !self.supports_protocol(protocol) => None,
            _ => {
                let ((src_port, dst_port), may_open) = ports(protocol, segment)?;
                Some((Tuple4::new((src, src_port), (dst, dst_port), protocol), may_open))
            }
        }
    }

    /// The same, by the bytes of a packet from the IP header on, without link padding.
    #[inline]
    pub fn key_of(self, datagram: &[u8]) -> Option<(Tuple4, bool)> {
        let plain = if self.ignores_ports() { None } else { Tuple4::of_plain(datagram) };
        match plain {
            Some(key) if self.supports_protocol(key.proto()) => Some((key, true)),
            _ => self.key_of_any(datagram),
        }
    }

    /// As [`RewriterKind::key_of`]; not inlined, because packets with ports are mostly plain.
    #[inline(never)]
    fn key_of_any(self, datagram: &[u8]) -> Option<(Tuple4, bool)> {
        let (ip, _) = Ipv4Header::from_prefix(datagram)?;
        let payload = datagram.get(ip.header_len().max(Ipv4Header::LEN)..);
        self.key(ip, payload.unwrap_or_default())
    }

    /// The second key of a packet: for source addresses, that of a reply.
    pub(super) fn second_key(self, dst: Ipv4Addr) -> Option<Tuple4> {
        (self == RewriterKind::SourceAddress).then(|| Tuple4::new(NO_ENDPOINT, (dst, 0), 0))
    }

    /// Whether keys consist of addresses only, which every fragment carries.
    pub fn ignores_ports(self) -> bool {
        matches!(self, RewriterKind::SourceAddress | RewriterKind::AddressPair)
    }

    /// Whether this kind's keys have the ports or identifiers of a protocol.
    pub(super) fn supports_protocol(self, protocol: u8) -> bool {
        match self {
            RewriterKind::TcpUdp => matches!(protocol, ip_proto::TCP | ip_proto::UDP),
            RewriterKind::Tcp => protocol == ip_proto::TCP,
            RewriterKind::Udp => transport::has_ports(protocol),
            RewriterKind::IcmpEcho => protocol == ip_proto::ICMP,
            RewriterKind::SourceAddress | RewriterKind::AddressPair => false,
        }
    }

    /// This kind's key of a flow whose ports and protocol are known.
    pub(super) fn flow_key(self, flow: Tuple4) -> Option<Tuple4> {
        match self {
            RewriterKind::SourceAddress => Some(Tuple4::new((flow.src().0, 0), NO_ENDPOINT, 0)),
            RewriterKind::AddressPair => Some(Tuple4::new((flow.src().0, 0), (flow.dst().0, 0), 0)),
            _ => self.supports_protocol(flow.proto()).then_some(flow),
        }
    }

    /// Adapts a pattern to this kind. The error is in Click's words.
    pub(super) fn adapt_pattern(self, pattern: Pattern) -> Result<Pattern, String> {
        let class = match self {
            RewriterKind::SourceAddress => "IPAddrRewriter",
            RewriterKind::AddressPair => "IPAddrPairRewriter",
            RewriterKind::IcmpEcho => return Ok(pattern.for_identifier()),
            RewriterKind::TcpUdp | RewriterKind::Tcp | RewriterKind::Udp => return Ok(pattern),
        };
        if pattern.has_ports() {
            return Err(format!("{class} cannot accept IPRewriter patterns"));
        }
        if self == RewriterKind::SourceAddress && pattern.changes_dst() {
            return Err(format!("{class} pattern destination address must be '-'"));
        }
        Ok(pattern)
    }
}

/// The ports of a segment, and whether it may open a mapping. The identifier of an ICMP echo is the
/// port of the host that pings; an echo reply opens no mapping.
#[inline]
pub(super) fn ports(protocol: u8, segment: &[u8]) -> Option<((u16, u16), bool)> {
    match protocol {
        _ if transport::has_ports(protocol) => {
            Some((udp::ports(segment.get(..transport::PORTS_LEN)?)?, true))
        }
        ip_proto::ICMP => {
            let (message, _) = Icmp::from_prefix(segment)?;
            match message.kind() {
                icmp::ECHO => Some(((message.id(), 0), true)),
                icmp::ECHO_REPLY => Some(((0, message.id()), false)),
                _ => None,
            }
        }
        _ => None,
    }
}
