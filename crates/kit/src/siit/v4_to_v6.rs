//! Translation from IPv4 to IPv6.

use super::{PacketRole, Refusal, embed_v4, icmp};
use castanet_wire::checksum::Delta;
use castanet_wire::{Fragment6, Ipv4Header, Ipv6Header, Udp, ip_proto, transport};

/// Translates an IPv4 packet without padding, from its header on, and writes the IPv6 packet to
/// `out`.
pub fn to_v6(packet: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    out.clear();
    translate(packet, PacketRole::Outer, out)
}

/// Appends the translation of a packet.
pub(super) fn translate(packet: &[u8], role: PacketRole, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let (ip, rest) = Ipv4Header::from_prefix(packet).ok_or(Refusal::Malformed)?;
    let (_, body) = ip.split_options(rest).ok_or(Refusal::Malformed)?;
    let claimed = usize::from(ip.total_len()).checked_sub(ip.header_len());
    let len = claimed.filter(|&len| role == PacketRole::Quoted || len == body.len());
    let len = len.filter(|_| ip.version() == 4).ok_or(Refusal::Malformed)?;
    let header = headers(ip, len, out)?;
    let start = out.len();
    let pseudo6 = header.pseudo(header.next_header(), len);
    if !ip.is_first_fragment() && ip.protocol() != ip_proto::ICMP {
        out.extend(body);
        return Ok(());
    }
    match ip.protocol() {
        ip_proto::ICMP if ip.is_fragment() => return Err(Refusal::Fragment),
        ip_proto::ICMP => return icmp::to_v6(body, &header, len, role, out),
        _ => out.extend(body),
    }
    if ip.protocol() == ip_proto::UDP
        && let Some((udp, payload)) = Udp::from_prefix_mut(&mut out[start..])
        && udp.checksum() == 0
    {
        // IPv6 requires a checksum (RFC 7915, 4.5).
        return match role {
            PacketRole::Quoted => Ok(()),
            PacketRole::Outer if ip.is_fragment() => Err(Refusal::Fragment),
            PacketRole::Outer => {
                udp.update_checksum(pseudo6, payload);
                Ok(())
            }
        };
    }
    let delta = Delta::new().sum(ip.pseudo(len), pseudo6);
    transport::adjust_checksum(ip.protocol(), &mut out[start..], delta);
    Ok(())
}

/// Appends the headers (RFC 7915, 4.1). Returns the IPv6 header as if there were no fragment
/// header, for the pseudo header.
fn headers(ip: &Ipv4Header, len: usize, out: &mut Vec<u8>) -> Result<Ipv6Header, Refusal> {
    let protocol = match ip.protocol() {
        ip_proto::ICMP => ip_proto::ICMPV6,
        other => other,
    };
    let (src, dst) = (embed_v4(ip.src()), embed_v4(ip.dst()));
    let extra = if ip.is_fragment() { Fragment6::LEN } else { 0 };
    let total = u16::try_from(len + extra).map_err(|_| Refusal::TooLong)?;
    let mut header = Ipv6Header::new(protocol, src, dst, total);
    header.set_traffic_class(ip.tos());
    header.set_hop_limit(ip.ttl());
    let plain = header;
    if ip.is_fragment() {
        header.set_next_header(ip_proto::FRAGMENT);
    }
    out.extend(header.bytes());
    if ip.is_fragment() {
        let (offset, more) = (ip.fragment_offset() as u16, ip.more_fragments());
        out.extend(Fragment6::new(protocol, offset, more, ip.id().into()).bytes());
    }
    Ok(plain)
}
