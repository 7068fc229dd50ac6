//! Description of an IP packet by a sketch, and the construction of the packet.

use super::incorrect_checksum;
use crate::checksum::Sum;
use crate::{Fragment6, Icmp, Ipv4Header, Ipv6Header, Tcp, Udp, ip_proto};
use std::net::IpAddr;

/// The value of a checksum field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ChecksumSpec {
    #[default]
    Correct,
    Incorrect,
    Value(u16),
}

impl ChecksumSpec {
    /// The checksum, if `correct` is the correct one.
    pub(super) fn checksum(self, correct: u16) -> u16 {
        match self {
            ChecksumSpec::Correct => correct,
            ChecksumSpec::Incorrect => incorrect_checksum(correct),
            ChecksumSpec::Value(sum) => sum,
        }
    }
}

/// The fields of an IP packet; `None` means that the value follows from other fields.
#[derive(Clone, Debug)]
pub(super) struct IpSpec {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    pub(super) protocol: u8,
    pub(super) ttl: u8,
    pub(super) tos: u8,
    pub(super) id: u32,
    /// Fragment word of an IPv4 header, also for IPv6.
    pub(super) fragment: u16,
    /// Whether an IPv6 packet has a fragment header.
    pub(super) fragmented: bool,
    pub(super) flow: u32,
    pub(super) options: Vec<u8>,
    pub(super) hl: Option<u8>,
    pub(super) iplen: Option<u16>,
    pub(super) sum: ChecksumSpec,
    pub(super) transport: TransportSpec,
    pub(super) payload: Vec<u8>,
    /// Length of the packet, which is padded with zeros.
    pub(super) len: Option<usize>,
    pub(super) pad: usize,
    pub(super) short: usize,
}

/// The fields of a transport header.
#[derive(Clone, Debug, Default)]
pub(super) struct TransportSpec {
    pub(super) sport: u16,
    pub(super) dport: u16,
    pub(super) check: ChecksumSpec,
    pub(super) ulen: Option<u16>,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    pub(super) window: Option<u16>,
    pub(super) urgent: u16,
    pub(super) off: Option<u8>,
    pub(super) reserved: u8,
    pub(super) options: Vec<u8>,
    pub(super) kind: Option<u8>,
    pub(super) code: u8,
    pub(super) rest: u32,
}

/// The default TCP window.
pub(super) const DEFAULT_WINDOW: u16 = 65535;

impl IpSpec {
    /// A packet with these addresses and defaults for all other fields.
    pub(super) fn new(src: IpAddr, dst: IpAddr) -> Self {
        IpSpec {
            src,
            dst,
            protocol: ip_proto::UDP,
            ttl: 64,
            tos: 0,
            id: 0,
            fragment: 0,
            fragmented: false,
            flow: 0,
            options: Vec::new(),
            hl: None,
            iplen: None,
            sum: ChecksumSpec::Correct,
            transport: TransportSpec::default(),
            payload: Vec::new(),
            len: None,
            pad: 0,
            short: 0,
        }
    }

    /// Builds the packet.
    pub(super) fn build(&self) -> Result<Vec<u8>, String> {
        let head = match self.src {
            IpAddr::V4(_) => Ipv4Header::LEN + self.options.len(),
            IpAddr::V6(_) if self.fragmented => Ipv6Header::LEN + Fragment6::LEN,
            IpAddr::V6(_) => Ipv6Header::LEN,
        };
        let first = self.fragment & Ipv4Header::OFFSET_MASK == 0;
        let mut body = if first { self.transport.header(self.protocol) } else { Vec::new() };
        body.extend(&self.payload);
        let len = self.len.unwrap_or(head + body.len());
        let missing = len.checked_sub(head + body.len());
        let missing = missing.ok_or_else(|| {
            format!("`len {len}` is less than the {} bytes there are", head + body.len())
        })?;
        body.resize(body.len() + missing, 0);
        if first {
            self.transport.finish(self.protocol, |len| self.pseudo(len), &mut body);
        }
        let mut bytes = self.header(len)?;
        bytes.extend(body);
        if self.short > bytes.len() {
            return Err(format!("`short {}` is more than the packet", self.short));
        }
        bytes.truncate(bytes.len() - self.short);
        bytes.resize(bytes.len() + self.pad, 0);
        Ok(bytes)
    }

    /// Builds the network header of a packet of `len` bytes.
    fn header(&self, len: usize) -> Result<Vec<u8>, String> {
        let field = |len: usize| match self.iplen {
            Some(len) => Ok(len),
            None => u16::try_from(len).map_err(|_| format!("a packet of {len} bytes is too long")),
        };
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let mut ip = Ipv4Header::new(self.protocol, src, dst, field(len)?);
                let hl = self.hl.unwrap_or((Ipv4Header::LEN + self.options.len()) as u8);
                ip.set_header_len(hl.into());
                ip.set_tos(self.tos);
                ip.set_id(self.id as u16);
                ip.set_fragment_word(self.fragment);
                ip.set_ttl(self.ttl);
                ip.update_checksum(&self.options);
                ip.set_checksum(self.sum.checksum(ip.checksum()));
                Ok([&ip.0[..], &self.options].concat())
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let len = field(len - Ipv6Header::LEN)?;
                let next = if self.fragmented { ip_proto::FRAGMENT } else { self.protocol };
                let mut ip = Ipv6Header::new(next, src, dst, len);
                ip.set_hop_limit(self.ttl);
                ip.set_traffic_class(self.tos);
                ip.set_flow_label(self.flow);
                let fragment = if self.fragmented { &self.fragment_header().0[..] } else { &[] };
                Ok([&ip.0[..], fragment].concat())
            }
            _ => Err("source and destination are of different IP versions".into()),
        }
    }

    fn fragment_header(&self) -> Fragment6 {
        let more = self.fragment & Ipv4Header::MORE_FRAGMENTS != 0;
        let offset = (self.fragment & Ipv4Header::OFFSET_MASK) * 8;
        Fragment6::new(self.protocol, offset, more, self.id)
    }

    /// The sum of the pseudo header over a body of `len` bytes.
    pub(super) fn pseudo(&self, len: usize) -> Sum {
        match (self.src, self.dst) {
            (IpAddr::V4(_), IpAddr::V4(_)) if self.protocol == ip_proto::ICMP => Sum::new(),
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                crate::checksum::pseudo_v4(src, dst, self.protocol, len)
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                crate::checksum::pseudo_v6(src, dst, self.protocol, len)
            }
            _ => Sum::new(),
        }
    }
}

impl TransportSpec {
    /// Builds the header without length and checksum.
    fn header(&self, protocol: u8) -> Vec<u8> {
        match protocol {
            ip_proto::UDP => {
                let mut udp = Udp([0; Udp::LEN]);
                udp.set_src_port(self.sport);
                udp.set_dst_port(self.dport);
                udp.0.to_vec()
            }
            ip_proto::TCP => {
                let mut tcp = Tcp([0; Tcp::LEN]);
                tcp.set_src_port(self.sport);
                tcp.set_dst_port(self.dport);
                tcp.set_seq(self.seq);
                tcp.set_ack(self.ack);
                tcp.set_header_len(self.off.map_or(Tcp::LEN + self.options.len(), usize::from));
                tcp.set_reserved(self.reserved);
                tcp.set_flags(self.flags);
                tcp.set_window(self.window.unwrap_or(DEFAULT_WINDOW));
                tcp.set_urgent(self.urgent);
                [&tcp.0[..], &self.options].concat()
            }
            ip_proto::ICMP | ip_proto::ICMPV6 => {
                let mut icmp = Icmp([0; Icmp::LEN]);
                icmp.set_kind(self.kind.unwrap_or(default_kind(protocol)));
                icmp.set_code(self.code);
                icmp.set_rest(self.rest);
                icmp.0.to_vec()
            }
            _ => Vec::new(),
        }
    }

    /// Sets length and checksum of the header at the start of `body`.
    fn finish(&self, protocol: u8, pseudo: impl Fn(usize) -> Sum, body: &mut [u8]) {
        if protocol == ip_proto::UDP {
            let len = body.len();
            if let Some((udp, _)) = Udp::from_prefix_mut(body) {
                udp.set_length(self.ulen.unwrap_or(len as u16));
            }
        }
        let correct = correct_checksum(protocol, pseudo, body);
        set_checksum(protocol, self.check.checksum(correct), body);
    }
}

/// The default type of an ICMP message: echo request.
pub(super) fn default_kind(protocol: u8) -> u8 {
    if protocol == ip_proto::ICMPV6 { crate::icmp6::ECHO } else { crate::icmp::ECHO }
}

/// Computes the correct checksum for the transport header at the start of `body`,
/// whose checksum field is ignored. A UDP checksum covers the length in the UDP
/// header, if `body` is that long. `pseudo` is the sum of the pseudo header by length.
pub(super) fn correct_checksum(protocol: u8, pseudo: impl Fn(usize) -> Sum, body: &[u8]) -> u16 {
    let udp = Udp::from_prefix(body).filter(|_| protocol == ip_proto::UDP);
    let covered = udp.map(|(udp, _)| usize::from(udp.length())).filter(|&len| len >= Udp::LEN);
    let body = covered.and_then(|len| body.get(..len)).unwrap_or(body);
    let pseudo = pseudo(body.len());
    match protocol {
        ip_proto::UDP => Udp::from_prefix(body).map_or(0, |(udp, rest)| {
            let mut udp = *udp;
            udp.update_checksum(pseudo, rest);
            udp.checksum()
        }),
        ip_proto::TCP => Tcp::from_prefix(body).map_or(0, |(tcp, rest)| {
            let mut tcp = *tcp;
            tcp.update_checksum(pseudo, rest);
            tcp.checksum()
        }),
        ip_proto::ICMP | ip_proto::ICMPV6 => Icmp::from_prefix(body).map_or(0, |(icmp, rest)| {
            let mut icmp = *icmp;
            icmp.set_checksum(0);
            pseudo.slice(&icmp.0).slice(rest).checksum()
        }),
        _ => 0,
    }
}

fn set_checksum(protocol: u8, check: u16, body: &mut [u8]) {
    match protocol {
        ip_proto::UDP => {
            if let Some((udp, _)) = Udp::from_prefix_mut(body) {
                udp.set_checksum(check);
            }
        }
        ip_proto::TCP => {
            if let Some((tcp, _)) = Tcp::from_prefix_mut(body) {
                tcp.set_checksum(check);
            }
        }
        ip_proto::ICMP | ip_proto::ICMPV6 => {
            if let Some((icmp, _)) = Icmp::from_prefix_mut(body) {
                icmp.set_checksum(check);
            }
        }
        _ => {}
    }
}
