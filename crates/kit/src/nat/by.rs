//! What flows are told apart by.

use super::pattern::Pattern;
use crate::flow::Tuple4;
use castanet_wire::{Icmp, Ipv4Header, icmp, ip_proto, transport, udp};
use std::net::Ipv4Addr;

/// What a rewriter goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Addresses and ports of TCP and UDP, each with states of its own.
    Both,
    /// Addresses and ports of TCP.
    Tcp,
    /// Addresses and ports, of whichever protocol.
    Udp,
    /// Source addresses.
    Source,
    /// Pairs of addresses.
    Pair,
    /// Addresses and identifiers of ICMP echoes.
    Echo,
}

/// The zone's part of nobody.
const NOBODY: (Ipv4Addr, u16) = (Ipv4Addr::UNSPECIFIED, 0);

impl By {
    /// The key of a packet, and whether it may begin a flow; `None` for packets that are not
    /// rewritten. Replies to echoes have theirs, which none begins with.
    #[inline]
    pub fn key(self, ip: &Ipv4Header, segment: &[u8]) -> Option<(Tuple4, bool)> {
        let (src, dst, protocol) = (ip.src(), ip.dst(), ip.protocol());
        match self {
            By::Source => Some((Tuple4::new((src, 0), NOBODY, 0), true)),
            By::Pair => Some((Tuple4::new((src, 0), (dst, 0), 0), true)),
            _ if !ip.is_first_fragment() => None,
            By::Echo if protocol == ip_proto::ICMP => {
                let (message, _) = Icmp::from_prefix(segment)?;
                match message.kind() {
                    icmp::ECHO => Some((echo(src, dst, message.id()), true)),
                    icmp::ECHO_REPLY => Some((echo(dst, src, message.id()).reversed(), false)),
                    _ => None,
                }
            }
            _ if !self.takes(protocol) || segment.len() < transport::PORTS_LEN => None,
            _ => {
                let (src_port, dst_port) = udp::ports(segment)?;
                Some((Tuple4::new((src, src_port), (dst, dst_port), protocol), true))
            }
        }
    }

    /// The second key by which a packet may be found, if there can be one.
    pub(super) fn other_key(self, datagram: &[u8], zone: u16) -> Option<Tuple4> {
        let (ip, _) = Ipv4Header::from_prefix(datagram).filter(|_| self == By::Source)?;
        Some(Tuple4::new(NOBODY, (ip.dst(), 0), 0).in_zone(zone))
    }

    /// Whether addresses alone count, which each fragment has.
    pub fn is_of_addresses(self) -> bool {
        matches!(self, By::Source | By::Pair)
    }

    /// Whether it rewrites packets of a protocol that has ports.
    pub(super) fn takes(self, protocol: u8) -> bool {
        match self {
            By::Both => matches!(protocol, ip_proto::TCP | ip_proto::UDP),
            By::Tcp => protocol == ip_proto::TCP,
            By::Udp => matches!(protocol, ip_proto::TCP | ip_proto::UDP | ip_proto::DCCP),
            By::Source | By::Pair | By::Echo => false,
        }
    }

    /// The key of a flow of which ports and protocol are known.
    pub(super) fn of(self, flow: Tuple4) -> Option<Tuple4> {
        match self {
            By::Source => Some(Tuple4::new((flow.src().0, 0), NOBODY, 0)),
            By::Pair => Some(Tuple4::new((flow.src().0, 0), (flow.dst().0, 0), 0)),
            _ => self.takes(flow.proto()).then_some(flow),
        }
    }

    /// The pattern as it can be used here; why it cannot, in Click's words.
    pub(super) fn fit(self, pattern: Pattern) -> Result<Pattern, String> {
        let class = match self {
            By::Source => "IPAddrRewriter",
            By::Pair => "IPAddrPairRewriter",
            By::Echo => return Ok(pattern.by_identifier()),
            By::Both | By::Tcp | By::Udp => return Ok(pattern),
        };
        if pattern.has_ports() {
            return Err(format!("{class} cannot accept IPRewriter patterns"));
        }
        if self == By::Source && pattern.changes_dst() {
            return Err(format!("{class} pattern destination address must be '-'"));
        }
        Ok(pattern)
    }
}

/// The key of an echo request.
pub(super) fn echo(src: Ipv4Addr, dst: Ipv4Addr, id: u16) -> Tuple4 {
    Tuple4::new((src, id), (dst, 0), ip_proto::ICMP)
}
