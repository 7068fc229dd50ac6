//! Translation from IPv6 to IPv4.

use super::{PacketRole, Refusal, extract_v4, icmp};
use castanet_wire::checksum::{Delta, Sum};
use castanet_wire::extension::{self, UpperLayer};
use castanet_wire::{Ipv4Header, Ipv6Header, ip_proto, transport};

/// Translates an IPv6 packet without padding, from its header on, and writes the IPv4 packet to
/// `out`.
pub fn to_v4(packet: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    out.clear();
    translate(packet, PacketRole::Outer, out)
}

/// Appends the translation of a packet.
pub(super) fn translate(packet: &[u8], role: PacketRole, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let (ip, rest) = Ipv6Header::from_prefix(packet).ok_or(Refusal::Malformed)?;
    let claimed = usize::from(ip.payload_len());
    let upper = extension::upper_layer(ip.next_header(), rest);
    let whole = role == PacketRole::Quoted || claimed == rest.len();
    if ip.version() != 6 || !whole || extension::is_extension(upper.protocol) {
        return Err(Refusal::Malformed);
    }
    let header = header(ip, &upper, claimed)?;
    let start = out.len() + Ipv4Header::LEN;
    out.extend(header.bytes());
    let (body, len) = (&rest[upper.offset..], claimed.saturating_sub(upper.offset));
    let pseudo6 = ip.pseudo(upper.protocol, len);
    if upper.is_later_fragment() && upper.protocol != ip_proto::ICMPV6 {
        out.extend(body);
        return Ok(());
    }
    match upper.protocol {
        ip_proto::ICMPV6 if header.is_fragment() => return Err(Refusal::Fragment),
        ip_proto::ICMPV6 => return icmp::to_v4(body, pseudo6, role, out),
        _ => out.extend(body),
    }
    let delta = Delta::new().sum(pseudo6, header.pseudo(len));
    transport::adjust_checksum(upper.protocol, &mut out[start..], delta);
    Ok(())
}

/// The IPv4 header with its checksum (RFC 7915, 5.1).
fn header(ip: &Ipv6Header, upper: &UpperLayer, claimed: usize) -> Result<Ipv4Header, Refusal> {
    let (src, dst) = extract_v4(ip.src()).zip(extract_v4(ip.dst())).ok_or(Refusal::Address)?;
    let total = Ipv4Header::LEN + claimed.saturating_sub(upper.offset);
    let total = u16::try_from(total).map_err(|_| Refusal::TooLong)?;
    let protocol = match upper.protocol {
        ip_proto::ICMPV6 => ip_proto::ICMP,
        other => other,
    };
    let mut header = Ipv4Header::new(protocol, src, dst, total);
    header.set_tos(ip.traffic_class());
    header.set_ttl(ip.hop_limit());
    match upper.fragment {
        Some(fragment) => {
            header.set_id(fragment.id() as u16);
            header.set_more_fragments(fragment.more_fragments());
            header.set_fragment_offset(fragment.offset().into());
        }
        None => header.set_dont_fragment(true),
    }
    header.update_checksum(&[]);
    Ok(header)
}

/// The sum of the pseudo header, which ICMP over IPv4 does not have.
pub(super) const NO_PSEUDO: Sum = Sum::new();
