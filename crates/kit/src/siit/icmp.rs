//! Translation of ICMP messages (RFC 7915, 4.2 and 5.2).

use super::{PacketRole, Refusal, v4_to_v6, v6_to_v4};
use castanet_wire::checksum::{Delta, Sum};
use castanet_wire::{Icmp, Ipv4Header, Ipv6Header, icmp, icmp6, ip_proto};

/// The difference in length between the IPv6 and the IPv4 header.
const HEADER_GROWTH: u32 = (Ipv6Header::LEN - Ipv4Header::LEN) as u32;
/// The minimum MTU of IPv6 links (RFC 8200, section 5).
const MIN_MTU: u32 = 1280;

/// Appends an ICMPv6 message, whose pseudo header has this sum, as an ICMP message.
pub(super) fn to_v4(
    message: &[u8],
    pseudo: Sum,
    role: PacketRole,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let (old, payload) = Icmp::from_prefix(message).ok_or(Refusal::Malformed)?;
    if let Some(kind) = echo(old.kind()) {
        append_echo(old, kind, Delta::new().sum(pseudo, v6_to_v4::NO_PSEUDO), payload, out);
        return Ok(());
    }
    let (kind, code, rest) = error_to_v4(old).ok_or(Refusal::Message)?;
    let start = append_error(kind, code, rest, role, out)?;
    v6_to_v4::translate(payload, PacketRole::Quoted, out)?;
    if let Some((icmp, payload)) = Icmp::from_prefix_mut(&mut out[start..]) {
        icmp.update_checksum(payload);
    }
    finish_v4(start, out)
}

/// Appends an ICMP message as an ICMPv6 message after this header.
pub(super) fn to_v6(
    message: &[u8],
    header: &Ipv6Header,
    len: usize,
    role: PacketRole,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let (old, payload) = Icmp::from_prefix(message).ok_or(Refusal::Malformed)?;
    if let Some(kind) = echo(old.kind()) {
        let pseudo = header.pseudo(ip_proto::ICMPV6, len);
        append_echo(old, kind, Delta::new().sum(v6_to_v4::NO_PSEUDO, pseudo), payload, out);
        return Ok(());
    }
    let (kind, code, rest) = error_to_v6(old).ok_or(Refusal::Message)?;
    let start = append_error(kind, code, rest, role, out)?;
    v4_to_v6::translate(payload, PacketRole::Quoted, out)?;
    let len = out.len() - start;
    let pseudo = header.pseudo(ip_proto::ICMPV6, len);
    if let Some((icmp, payload)) = Icmp::from_prefix_mut(&mut out[start..]) {
        icmp.update_checksum_v6(pseudo, payload);
    }
    let len = u16::try_from(len).map_err(|_| Refusal::TooLong)?;
    if let Some((ip, _)) = Ipv6Header::from_prefix_mut(out) {
        ip.set_payload_len(len);
    }
    Ok(())
}

/// The other protocol's type for an echo request or reply.
fn echo(kind: u8) -> Option<u8> {
    const PAIRS: [(u8, u8); 2] = [(icmp::ECHO, icmp6::ECHO), (icmp::ECHO_REPLY, icmp6::ECHO_REPLY)];
    PAIRS.iter().find_map(|&(four, six)| match kind {
        _ if kind == four => Some(six),
        _ if kind == six => Some(four),
        _ => None,
    })
}

/// Appends an echo with its new type; `delta` is the change of the checksum by the pseudo header.
fn append_echo(old: &Icmp, kind: u8, delta: Delta, payload: &[u8], out: &mut Vec<u8>) {
    let mut new = *old;
    new.rewrite_kind(kind);
    new.adjust_checksum(delta);
    new.normalize_zero_checksum(payload);
    out.extend(new.bytes());
    out.extend(payload);
}

/// Appends the header of an error without its checksum, and returns its offset.
fn append_error(
    kind: u8,
    code: u8,
    rest: u32,
    role: PacketRole,
    out: &mut Vec<u8>,
) -> Result<usize, Refusal> {
    if role == PacketRole::Quoted {
        return Err(Refusal::Message); // there are no errors about errors
    }
    let start = out.len();
    let mut header = Icmp([0; Icmp::LEN]);
    header.set_kind(kind);
    header.set_code(code);
    header.set_rest(rest);
    out.extend(header.bytes());
    Ok(start)
}

/// Sets the total length in the IPv4 header of an error.
fn finish_v4(start: usize, out: &mut [u8]) -> Result<(), Refusal> {
    let total = u16::try_from(start + out[start..].len()).map_err(|_| Refusal::TooLong)?;
    if let Some((ip, _)) = Ipv4Header::from_prefix_mut(out) {
        ip.set_total_len(total);
        ip.update_checksum(&[]);
    }
    Ok(())
}

/// Type, code and second word of an ICMPv6 error in ICMP.
fn error_to_v4(old: &Icmp) -> Option<(u8, u8, u32)> {
    const HOST: u8 = 1;
    const PROTOCOL: u8 = 2;
    const PORT: u8 = 3;
    const NEED_FRAGMENT: u8 = 4;
    const PROHIBITED: u8 = 10;
    Some(match (old.kind(), old.code()) {
        (icmp6::UNREACHABLE, 0 | 2 | 3) => (icmp::UNREACHABLE, HOST, 0),
        (icmp6::UNREACHABLE, 1 | 5 | 6) => (icmp::UNREACHABLE, PROHIBITED, 0),
        (icmp6::UNREACHABLE, 4) => (icmp::UNREACHABLE, PORT, 0),
        (icmp6::TOO_BIG, _) => {
            let mtu = old.rest().saturating_sub(HEADER_GROWTH).min(u16::MAX.into());
            (icmp::UNREACHABLE, NEED_FRAGMENT, mtu)
        }
        (icmp6::TIME_EXCEEDED, code) => (icmp::TIME_EXCEEDED, code, 0),
        (icmp6::PARAMETER_PROBLEM, 0) => {
            let pointer = match old.rest() {
                at @ (0 | 1) => at,
                4 | 5 => 2,
                6 => 9,
                7 => 8,
                8..24 => 12,
                24..40 => 16,
                _ => return None,
            };
            (icmp::PARAMETER_PROBLEM, 0, pointer << 24)
        }
        (icmp6::PARAMETER_PROBLEM, 1) => (icmp::UNREACHABLE, PROTOCOL, 0),
        _ => return None,
    })
}

/// Type, code and second word of an ICMP error in ICMPv6.
fn error_to_v6(old: &Icmp) -> Option<(u8, u8, u32)> {
    const NO_ROUTE: u8 = 0;
    const PROHIBITED: u8 = 1;
    const PORT: u8 = 4;
    const NEXT_HEADER: u8 = 1;
    Some(match (old.kind(), old.code()) {
        (icmp::UNREACHABLE, 0 | 1 | 5..=8 | 11 | 12) => (icmp6::UNREACHABLE, NO_ROUTE, 0),
        (icmp::UNREACHABLE, 2) => {
            (icmp6::PARAMETER_PROBLEM, NEXT_HEADER, Ipv6Header::NEXT_HEADER as u32)
        }
        (icmp::UNREACHABLE, 3) => (icmp6::UNREACHABLE, PORT, 0),
        (icmp::UNREACHABLE, 4) => {
            (icmp6::TOO_BIG, 0, (u32::from(old.seq()) + HEADER_GROWTH).max(MIN_MTU))
        }
        (icmp::UNREACHABLE, 9 | 10 | 13 | 15) => (icmp6::UNREACHABLE, PROHIBITED, 0),
        (icmp::TIME_EXCEEDED, code) => (icmp6::TIME_EXCEEDED, code, 0),
        (icmp::PARAMETER_PROBLEM, 0 | 2) => {
            let pointer = match old.pointer() {
                at @ (0 | 1) => at.into(),
                2 | 3 => 4,
                8 => 7,
                9 => 6,
                12..16 => 8,
                16..20 => 24,
                _ => return None,
            };
            (icmp6::PARAMETER_PROBLEM, 0, pointer)
        }
        _ => return None,
    })
}
