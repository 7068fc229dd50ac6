//! ICMP errors about rewritten packets: they quote the packet that was sent, and are rewritten to
//! quote the original.

use super::kind::{RewriterKind, echo};
use super::{Table, Tuple4};
use castanet_wire::checksum::{Delta, Sum};
use castanet_wire::{Icmp, Ipv4Header, Tcp, icmp, ip_proto, transport, udp};
use std::net::Ipv4Addr;

/// The packet that an ICMP error quotes.
#[derive(Clone, Copy, Debug)]
pub struct QuotedPacket {
    /// The key that a reply to it has.
    reply: Tuple4,
    /// Whether its ports or its identifier are quoted.
    has_ids: bool,
    src: Ipv4Addr,
    dst: Ipv4Addr,
    /// TCP's sequence number.
    seq: Option<u32>,
}

/// The quoted packet as it was before it was rewritten.
#[derive(Clone, Copy, Debug)]
pub struct OriginalPacket {
    src: Ipv4Addr,
    dst: Ipv4Addr,
    /// The ports, or the identifier first, if the kind of rewriter uses them.
    ports: Option<(u16, u16)>,
    seq: Option<u32>,
    /// The output of replies to it, and so of errors about it.
    pub output: u8,
    /// The annotation of replies, if the quoted packet is a reply.
    pub anno: Option<u8>,
}

/// Parses the packet that an ICMP error quotes; `None` if it is no error about an IPv4 packet.
pub fn parse_quote(message: &[u8]) -> Option<QuotedPacket> {
    let (error, quoted) = Icmp::from_prefix(message).filter(|(it, _)| it.is_error())?;
    let _ = error;
    let (ip, rest) = Ipv4Header::from_prefix(quoted)?;
    let (_, segment) = ip.split_options(rest).or_else(|| {
        // The options are cut off: there are no ports then.
        (ip.header_len() >= Ipv4Header::LEN).then_some((&[][..], &[][..]))
    })?;
    if ip.version() != 4 {
        return None;
    }
    let (src, dst, protocol) = (ip.src(), ip.dst(), ip.protocol());
    let segment = if ip.is_first_fragment() { segment } else { &[] };
    let ends = match protocol {
        ip_proto::TCP | ip_proto::UDP | ip_proto::DCCP if segment.len() >= transport::PORTS_LEN => {
            udp::ports(segment).map(|(from, to)| Tuple4::new((dst, to), (src, from), protocol))
        }
        ip_proto::ICMP => Icmp::from_prefix(segment).and_then(|(it, _)| match it.kind() {
            icmp::ECHO => Some(echo(src, dst, it.id()).reversed()),
            icmp::ECHO_REPLY => Some(echo(dst, src, it.id())),
            _ => None,
        }),
        _ => None,
    };
    // An error always quotes this much of TCP, while the rest of the header may be missing.
    let seq = segment.get(Tcp::SEQ..).and_then(|bytes| bytes.first_chunk());
    let seq = seq.filter(|_| protocol == ip_proto::TCP).map(|bytes| u32::from_be_bytes(*bytes));
    let reply = ends.unwrap_or(Tuple4::new((dst, 0), (src, 0), protocol));
    Some(QuotedPacket { reply, has_ids: ends.is_some(), src, dst, seq })
}

impl Table {
    /// The original of the quoted packet, before a member rewrote it.
    pub fn original(&self, zone: u16, quote: &QuotedPacket) -> Option<OriginalPacket> {
        let kind = self.members.get(usize::from(zone))?.config.kind;
        let protocol = quote.reply.proto();
        let keys = match kind {
            RewriterKind::SourceAddress => {
                let reply = Ipv4Header::new(protocol, quote.dst, quote.src, 0);
                [kind.flow_key(quote.reply), kind.second_key(&reply.0, 0)]
            }
            RewriterKind::AddressPair => [kind.flow_key(quote.reply), None],
            RewriterKind::IcmpEcho => {
                [(quote.has_ids && protocol == ip_proto::ICMP).then_some(quote.reply), None]
            }
            RewriterKind::TcpUdp | RewriterKind::Tcp | RewriterKind::Udp => {
                [kind.flow_key(quote.reply).filter(|_| quote.has_ids), None]
            }
        };
        let found = keys.into_iter().flatten().find_map(|key| self.find(&key.in_zone(zone)));
        let ((id, back), flows) = (found?, self.flows.as_ref()?);
        let (key, mapping) = (*flows.key(id), flows.get(id));
        // The lookup key was that of a reply: if it is the flow's own key, the quoted packet was
        // a reply.
        let before = if back { key } else { mapping.reply_key.unwrap_or(key) };
        let (src, dst) = match (kind, back) {
            (RewriterKind::SourceAddress, true) => ((before.src().0, 0), (quote.dst, 0)),
            (RewriterKind::SourceAddress, false) => ((quote.src, 0), (before.dst().0, 0)),
            _ => (before.src(), before.dst()),
        };
        let ports = match (kind, back) {
            (RewriterKind::SourceAddress | RewriterKind::AddressPair, _) => None,
            (RewriterKind::IcmpEcho, false) => Some((dst.1, 0)),
            _ => Some((src.1, dst.1)),
        };
        Some(OriginalPacket {
            src: src.0,
            dst: dst.0,
            ports,
            seq: quote.seq.map(|seq| mapping.unshift_seq(!back, seq)),
            output: mapping.outputs[usize::from(back)],
            anno: back.then_some(mapping.anno),
        })
    }
}

/// Rewrites an error to quote the original packet, and to go to the original sender. The error's
/// own source stays, unless it is the receiver of the quoted packet. Returns the new destination,
/// if it changed.
pub fn rewrite_error(
    datagram: &mut [u8],
    quote: &QuotedPacket,
    original: &OriginalPacket,
) -> Option<Ipv4Addr> {
    let (ip, rest) = Ipv4Header::from_prefix_mut(datagram)?;
    let mut receiver = None;
    if ip.dst() == quote.src {
        ip.rewrite_dst(original.src);
        receiver = Some(original.src);
    }
    if ip.src() == quote.dst {
        ip.rewrite_src(original.dst);
    }
    let options = ip.header_len().checked_sub(Ipv4Header::LEN)?;
    let (message, quoted) = Icmp::from_prefix_mut(rest.get_mut(options..)?)?;
    // The changes lie in these first bytes, headers with options; the sum of the rest stays.
    const HEADERS: usize = 60 + 20;
    let length = quoted.len().min(HEADERS);
    let before = Sum::new().slice(&quoted[..length]);
    rewrite_quoted(quoted, quote, original);
    message.adjust_checksum(Delta::new().sum(before, Sum::new().slice(&quoted[..length])));
    receiver
}

fn rewrite_quoted(
    quoted: &mut [u8],
    quote: &QuotedPacket,
    original: &OriginalPacket,
) -> Option<()> {
    let (ip, rest) = Ipv4Header::from_prefix_mut(quoted)?;
    let addresses = ip.rewrite_src(original.src).and(ip.rewrite_dst(original.dst));
    if !ip.is_first_fragment() {
        return None;
    }
    let options = ip.header_len().checked_sub(Ipv4Header::LEN)?;
    let segment = rest.get_mut(options..)?;
    if ip.protocol() == ip_proto::ICMP {
        let (echo, _) = Icmp::from_prefix_mut(segment).filter(|_| quote.has_ids)?;
        echo.rewrite_id(original.ports?.0);
        return Some(());
    }
    let mut delta = addresses;
    if let Some((src, dst)) = original.ports {
        let (from, to) = udp::ports(segment)?;
        delta = delta.u16(from, src).u16(to, dst);
        transport::set_ports(segment, src, dst);
    }
    if let (Some(old), Some(new)) = (quote.seq, original.seq)
        && let Some(bytes) = segment.get_mut(Tcp::SEQ..)?.first_chunk_mut()
    {
        delta = delta.u32(old, new);
        *bytes = new.to_be_bytes();
    }
    transport::adjust_checksum(ip.protocol(), segment, delta);
    Some(())
}
