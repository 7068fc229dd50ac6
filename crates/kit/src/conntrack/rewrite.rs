//! Writes another tuple into a packet, or into the packet that an ICMP error quotes, and updates
//! the checksums.

use super::{Address, Tuple4, TupleKey};
use castanet_wire::checksum::{Delta, Sum};
use castanet_wire::{Icmp, Ipv4Header, Tcp, ip_proto, transport, udp};

/// The offsets of a packet's headers.
#[derive(Clone, Copy, Debug)]
pub struct HeaderOffsets {
    /// The IP header.
    pub network: usize,
    /// The transport header; in a later fragment, which has none, the end.
    pub transport: usize,
    /// The end of the packet.
    pub end: usize,
    /// The transport protocol.
    pub protocol: u8,
}

/// Rewrites a packet that has the tuple `from`, of which the transport header may be cut off behind
/// the ports. Addresses and ports in which `to` does not differ stay as they are in the packet. The
/// identifier of an ICMP message is a port that differs. `None` if there is no transport header.
#[inline]
pub fn rewrite_tuple<A: Address>(
    bytes: &mut [u8],
    at: HeaderOffsets,
    from: &TupleKey<A>,
    to: &TupleKey<A>,
) -> Option<()> {
    let ((old_src, old_sport), (old_dst, old_dport)) = (from.src(), from.dst());
    let ((src, sport), (dst, dport)) = (to.src(), to.dst());
    let addresses = A::rewrite(bytes.get_mut(at.network..)?, |it| {
        (if old_src == src { it.0 } else { src }, if old_dst == dst { it.1 } else { dst })
    })?;
    let segment = bytes.get_mut(at.transport..at.end)?;
    match at.protocol {
        protocol if transport::has_ports(protocol) => {
            let old = udp::ports(segment)?;
            let sport = if old_sport == sport { old.0 } else { sport };
            let dport = if old_dport == dport { old.1 } else { dport };
            transport::set_ports(segment, sport, dport);
            let delta = addresses.u16(old.0, sport).u16(old.1, dport);
            transport::adjust_checksum(at.protocol, segment, delta);
        }
        protocol if protocol == A::ICMP => {
            let (message, rest) = Icmp::from_prefix_mut(segment)?;
            let (old, new) =
                if old_sport == sport { (old_dport, dport) } else { (old_sport, sport) };
            // Only IPv6 has a pseudo header in the checksum of ICMP.
            let delta = if A::ICMP == ip_proto::ICMP { Delta::new() } else { addresses };
            let id = if old == new { message.id() } else { new };
            if id != message.id() || A::ICMP != ip_proto::ICMP {
                message.adjust_checksum(delta.u16(message.id(), id));
                message.set_id(id);
                message.normalize_zero_checksum(rest);
            }
        }
        _ => {}
    }
    Some(())
}

/// The same for a packet of TCP or UDP over IPv4 that has exactly the tuple `from`.
#[inline]
pub fn replace_tuple(
    bytes: &mut [u8],
    at: HeaderOffsets,
    from: &Tuple4,
    to: &Tuple4,
) -> Option<()> {
    let datagram = bytes.get_mut(at.network..at.end)?;
    let header = at.transport.checked_sub(at.network)?;
    let (header, segment) = datagram.split_at_mut_checked(header)?;
    let (ip, _) = Ipv4Header::from_prefix_mut(header)?;
    write_tuple((ip, segment), from, to)
}

/// Writes `to` into a header and a segment that have exactly the tuple `from`, with both checksums. `None`,
/// and nothing is written, if the segment has no ports.
#[inline(always)]
pub(crate) fn write_tuple(
    (ip, segment): (&mut Ipv4Header, &mut [u8]),
    from: &Tuple4,
    to: &Tuple4,
) -> Option<()> {
    let ((old_src, old_dst), (src, dst)) = (from.addresses(), to.addresses());
    *segment.first_chunk_mut()? = to.ports().to_be_bytes();
    let addresses = Delta::new().addr(old_src, src).addr(old_dst, dst);
    ip.set_src(src);
    ip.set_dst(dst);
    ip.adjust_checksum(addresses);
    let delta = addresses.u32(from.ports(), to.ports());
    transport::adjust_checksum(to.proto(), segment, delta);
    Some(())
}

/// Rewrites an ICMP error about a packet with the tuple `from`, so that it is about one with the
/// tuple `to`: the quoted packet, and the addresses of the error. The error goes to the source of
/// the quoted packet; its sender may be the destination itself. `change` may change the quoted
/// transport header, too.
pub fn rewrite_error<A: Address>(
    bytes: &mut [u8],
    at: HeaderOffsets,
    quoted: HeaderOffsets,
    (from, to): (&TupleKey<A>, &TupleKey<A>),
    change: impl FnOnce(&mut [u8]),
) -> Option<()> {
    // The changes lie in these headers; the sum of the rest stays.
    let headers = quoted.network..quoted.end.min(quoted.transport + Tcp::LEN);
    let before = Sum::new().slice(bytes.get(headers.clone())?);
    rewrite_tuple(bytes, quoted, from, to);
    change(bytes.get_mut(quoted.transport..quoted.end)?);
    let quote = Delta::new().sum(before, Sum::new().slice(bytes.get(headers)?));
    let addresses = A::rewrite(bytes.get_mut(at.network..)?, |(src, dst)| {
        let src = if src == from.dst().0 { to.dst().0 } else { src };
        (src, if dst == from.src().0 { to.src().0 } else { dst })
    })?;
    let (message, _) = Icmp::from_prefix_mut(bytes.get_mut(at.transport..)?)?;
    let pseudo = if A::ICMP == ip_proto::ICMP { Delta::new() } else { addresses };
    message.adjust_checksum(quote.and(pseudo));
    Some(())
}
