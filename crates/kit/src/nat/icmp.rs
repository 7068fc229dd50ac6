//! ICMP errors about rewritten packets: they quote the packet that was sent, and are rewritten to
//! quote the original.

use super::kind::ports;
use super::{Table, Tuple4};
use crate::conntrack::{self, HeaderOffsets};
use castanet_wire::checksum::Delta;
use castanet_wire::{Icmp, Ipv4Header, Tcp, ip_proto, transport};
use std::net::Ipv4Addr;

/// The packet that an ICMP error quotes.
#[derive(Clone, Copy, Debug)]
pub struct QuotedPacket {
    tuple: Tuple4,
    /// Whether its ports or its identifier are quoted.
    has_ports: bool,
    /// TCP's sequence number.
    seq: Option<u32>,
}

/// The quoted packet as it was before it was rewritten.
#[derive(Clone, Copy, Debug)]
pub struct OriginalPacket {
    /// The quoted tuple and the original one; ports are 0 if they are not rewritten.
    tuples: (Tuple4, Tuple4),
    /// The quoted sequence number and the original one.
    seq: Option<(u32, u32)>,
    /// The output of replies to it, and so of errors about it.
    pub output: u8,
    /// The annotation of replies, if the quoted packet is a reply.
    pub anno: Option<u8>,
}

/// Parses the packet that an ICMP error quotes; `None` if it is no error about an IPv4 packet.
pub fn parse_quote(message: &[u8]) -> Option<QuotedPacket> {
    let (_, quoted) = Icmp::from_prefix(message).filter(|(it, _)| it.is_error())?;
    let (ip, rest) = Ipv4Header::from_prefix(quoted).filter(|(ip, _)| ip.version() == 4)?;
    // Options that are cut off leave no segment.
    let options = ip.header_len().checked_sub(Ipv4Header::LEN)?;
    let segment = rest.get(options..).filter(|_| ip.is_first_fragment()).unwrap_or_default();
    let protocol = ip.protocol();
    let ids = ports(protocol, segment).map(|(ids, _)| ids);
    let (src, dst) = ids.unwrap_or_default();
    // An error always quotes this much of TCP, while the rest of the header may be missing.
    let seq = segment.get(Tcp::SEQ..).and_then(|bytes| bytes.first_chunk());
    let seq = seq.filter(|_| protocol == ip_proto::TCP).map(|bytes| u32::from_be_bytes(*bytes));
    let tuple = Tuple4::new((ip.src(), src), (ip.dst(), dst), protocol);
    Some(QuotedPacket { tuple, has_ports: ids.is_some(), seq })
}

impl Table {
    /// The original of the quoted packet, before a member rewrote it.
    pub fn original(&self, zone: u16, quote: &QuotedPacket) -> Option<OriginalPacket> {
        let kind = self.members.get(usize::from(zone))?.config.kind;
        // A reply to the quoted packet has one of these keys.
        let reply = quote.tuple.reversed();
        let key = kind.flow_key(reply).filter(|_| quote.has_ports || kind.ignores_ports());
        let keys = [key, kind.second_key(reply.dst().0)];
        let found = keys.into_iter().flatten().find_map(|key| self.flows.find(&key.in_zone(zone)));
        let (id, back) = found?;
        let (key, reply_key, mapping) =
            (*self.flows.key(id), self.reply_key(id), self.flows.get(id));
        // If the key is the flow's own, the quoted packet was a reply.
        let (from, to) =
            if back { (reply_key.reversed(), key) } else { (key.reversed(), reply_key) };
        // Addresses that are not in the key stay as they are.
        let (src, dst) = (quote.tuple.src().0, quote.tuple.dst().0);
        let new_src = if from.src().0 == to.src().0 { src } else { to.src().0 };
        let new_dst = if from.dst().0 == to.dst().0 { dst } else { to.dst().0 };
        let proto = quote.tuple.proto();
        Some(OriginalPacket {
            tuples: (
                Tuple4::new((src, from.src().1), (dst, from.dst().1), proto),
                Tuple4::new((new_src, to.src().1), (new_dst, to.dst().1), proto),
            ),
            seq: quote.seq.map(|seq| (seq, mapping.unshift_seq(!back, seq))),
            output: mapping.outputs[usize::from(back)],
            anno: back.then_some(mapping.anno),
        })
    }
}

/// Rewrites an error to quote the original packet, and to go to the original sender. The error's
/// own source stays, unless it is the receiver of the quoted packet. Returns the new destination,
/// if it changed.
pub fn rewrite_error(datagram: &mut [u8], original: &OriginalPacket) -> Option<Ipv4Addr> {
    let (from, to) = original.tuples;
    let at = offsets(datagram, 0)?;
    let quoted = offsets(datagram, at.transport + Icmp::LEN)?;
    let (ip, _) = Ipv4Header::from_prefix(datagram)?;
    let is_sender = ip.dst() == from.src().0;
    conntrack::rewrite_error(datagram, at, quoted, (&from, &to), |segment| {
        if let Some((old, new)) = original.seq
            && let Some(bytes) = segment.get_mut(Tcp::SEQ..).and_then(|it| it.first_chunk_mut())
        {
            *bytes = new.to_be_bytes();
            transport::adjust_checksum(ip_proto::TCP, segment, Delta::new().u32(old, new));
        }
    })?;
    is_sender.then_some(to.src().0)
}

/// The offsets of the IPv4 packet at `network`, which goes on to the end of the bytes.
fn offsets(bytes: &[u8], network: usize) -> Option<HeaderOffsets> {
    let (ip, _) = Ipv4Header::from_prefix(bytes.get(network..)?)?;
    let (end, header) = (bytes.len(), ip.header_len());
    let transport = if ip.is_first_fragment() { (network + header).min(end) } else { end };
    let protocol = ip.protocol();
    (header >= Ipv4Header::LEN).then_some(HeaderOffsets { network, transport, end, protocol })
}
