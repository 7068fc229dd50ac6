//! Generation of ICMP errors: whether one may be sent, and how much of the packet it quotes (RFC
//! 1812, section 4.3.2; RFC 1122, section 3.2.2).

use castanet_wire::options::{RawOption, RawOptions};
use castanet_wire::{Icmp, Ipv4Header, icmp, ip_proto, ipv4};

/// The reason why no error may be sent about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suppression {
    /// The packet has no complete IPv4 header.
    Malformed,
    /// The packet is an ICMP error itself, or an ICMP packet too short to tell.
    AboutError,
    /// The destination is a broadcast or multicast address.
    GroupDestination,
    /// The packet came as a broadcast or multicast of the link.
    LinkGroup,
    /// The source is not the address of a single host: it is zero, loopback, multicast, broadcast
    /// or of class E.
    BadSource,
    /// The packet is a later fragment.
    LaterFragment,
    /// The packet is source-routed, and the error would be a redirect (RFC 1812, 5.2.7.2).
    RoutedRedirect,
}

/// Whether an address in host byte order may be that of a single host. `bad` has addresses that are
/// known not to be, such as the broadcast addresses of networks.
pub fn is_unicast(address: u32, bad: &[u32]) -> bool {
    address != u32::MAX && address >> 28 != 0xE && !bad.contains(&address)
}

/// Whether an address is valid as a packet's source (RFC 1812, section 5.3.7).
pub fn is_valid_source(address: u32, bad: &[u32]) -> bool {
    is_unicast(address, bad) && !matches!(address >> 24, 0 | 127 | 0xF0..)
}

/// Whether an error of `icmp_type` may be sent about a `packet`, from its IPv4 header on.
///
/// `link_group` tells whether the packet came as a broadcast or multicast of its link; `bad` has
/// addresses known not to be single hosts.
pub fn check_allowed(
    packet: &[u8],
    icmp_type: u8,
    link_group: bool,
    bad: &[u32],
) -> Result<(), Suppression> {
    let (header, options, message) = split(packet).ok_or(Suppression::Malformed)?;
    let first = header.is_first_fragment();
    // A later fragment has no ICMP header.
    if header.protocol() == ip_proto::ICMP
        && first
        && message.first_chunk::<4>().is_none_or(|word| icmp::is_error(word[Icmp::KIND]))
    {
        return Err(Suppression::AboutError);
    }
    if !is_unicast(header.dst_u32(), bad) {
        return Err(Suppression::GroupDestination);
    }
    if link_group {
        return Err(Suppression::LinkGroup);
    }
    if !is_valid_source(header.src_u32(), bad) {
        return Err(Suppression::BadSource);
    }
    if !first {
        return Err(Suppression::LaterFragment);
    }
    if icmp_type == icmp::REDIRECT && source_route(options).is_some() {
        return Err(Suppression::RoutedRedirect);
    }
    Ok(())
}

/// The source route option for a reply about the packet: the recorded part of the packet's own
/// route, reversed (RFC 1812, section 4.3.2.6).
///
/// Returns the option, padded to whole words, and its length. `None` if there is no route, or if
/// `problem`, the byte that a parameter problem points at, lies in the option.
pub fn reply_route(packet: &[u8], problem: Option<usize>) -> Option<([u8; 40], usize)> {
    let (_, options, _) = split(packet)?;
    let option = source_route(options)?;
    let at = Ipv4Header::LEN + option.offset;
    if problem.is_some_and(|problem| (at..at + option.len()).contains(&problem)) {
        return None;
    }
    // The recorded part of the option ends before its pointer.
    let (&pointer, addresses) = option.data.split_first()?;
    let recorded = usize::from(pointer) - 1;
    let mut out = [0; 40];
    (out[0], out[1], out[2]) = (option.kind, recorded as u8, 4);
    let addresses = addresses[..recorded - 3].rchunks_exact(4);
    for (to, from) in out[3..].chunks_exact_mut(4).zip(addresses) {
        to.copy_from_slice(from);
    }
    Some((out, recorded.next_multiple_of(4)))
}

/// The header of a packet, its options and the bytes behind; `None` if it is not complete.
fn split(packet: &[u8]) -> Option<(&Ipv4Header, &[u8], &[u8])> {
    let (header, rest) = Ipv4Header::from_prefix(packet)?;
    let (options, payload) = header.split_options(rest)?;
    Some((header, options, payload))
}

/// The first source route option with a valid pointer.
fn source_route(options: &[u8]) -> Option<RawOption<'_>> {
    RawOptions::new(options).find(|option| {
        let pointer = option.data.first().map_or(0, |&pointer| usize::from(pointer));
        matches!(option.kind, ipv4::OPTION_LOOSE_ROUTE | ipv4::OPTION_STRICT_ROUTE)
            && pointer >= 4
            && pointer.is_multiple_of(4)
            && pointer <= option.len() + 1
    })
}

/// How many bytes of a packet of `length` bytes fit into an error of at most `mtu` bytes (RFC 1812,
/// 4.3.2.3 says 576) with `route` bytes of options.
pub fn quote_len(length: usize, mtu: usize, route: usize) -> usize {
    length.min(mtu.saturating_sub(Ipv4Header::LEN + route + Icmp::LEN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_wire::icmp::*;

    fn packet(protocol: u8, src: u32, dst: u32) -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0];
        p.extend(src.to_be_bytes());
        p.extend(dst.to_be_bytes());
        p.extend([8, 0, 0, 0, 0, 0, 0, 0]);
        p
    }

    const SRC: u32 = 0x0a00_0001;
    const DST: u32 = 0x1400_0001;

    fn verdict(packet: &[u8]) -> Result<(), Suppression> {
        check_allowed(packet, TIME_EXCEEDED, false, &[0x0aff_ffff])
    }

    #[test]
    fn errors_about_ordinary_packets_are_allowed() {
        assert_eq!(verdict(&packet(17, SRC, DST)), Ok(()));
        assert_eq!(verdict(&packet(1, SRC, DST)), Ok(()), "an echo request");
        let mut first = packet(17, SRC, DST);
        first[6] = 0x20;
        assert_eq!(verdict(&first), Ok(()), "a first fragment");
    }

    #[test]
    fn every_suppression_has_its_reason() {
        use Suppression::*;
        for error in [UNREACHABLE, SOURCE_QUENCH, REDIRECT, TIME_EXCEEDED, PARAMETER_PROBLEM] {
            let mut p = packet(1, SRC, DST);
            p[20] = error;
            assert_eq!(verdict(&p), Err(AboutError));
        }
        assert_eq!(verdict(&packet(1, SRC, DST)[..22]), Err(AboutError));
        for dst in [u32::MAX, 0xE000_0001, 0x0aff_ffff] {
            assert_eq!(verdict(&packet(17, SRC, dst)), Err(GroupDestination));
        }
        for src in [0, 0x7F00_0001, 0xE000_0001, 0xF000_0001, u32::MAX, 0x0aff_ffff] {
            assert_eq!(verdict(&packet(17, src, DST)), Err(BadSource));
        }
        let mut later = packet(1, SRC, DST);
        (later[7], later[20]) = (1, 3);
        assert_eq!(verdict(&later), Err(LaterFragment));
        assert_eq!(check_allowed(&packet(17, SRC, DST), 3, true, &[]), Err(LinkGroup));
        assert_eq!(verdict(&[0x45, 0]), Err(Malformed));
        assert_eq!(verdict(&[]), Err(Malformed));
    }

    #[test]
    fn replies_retrace_the_route() {
        let mut p = packet(17, SRC, DST);
        p[0] = 0x48;
        p.splice(20..20, [131, 11, 12, 1, 1, 1, 1, 2, 2, 2, 2, 0]);
        assert_eq!(check_allowed(&p, REDIRECT, false, &[]), Err(Suppression::RoutedRedirect));
        assert_eq!(verdict(&p), Ok(()));
        let (route, length) = reply_route(&p, None).unwrap();
        assert_eq!(route[..length], [131, 11, 4, 2, 2, 2, 2, 1, 1, 1, 1, 0]);
        assert_eq!(reply_route(&p, Some(22)), None);
        assert!(reply_route(&p, Some(12)).is_some());
        p[22] = 4;
        assert_eq!(reply_route(&p, None).map(|(r, l)| r[..l].to_vec()), Some(vec![131, 3, 4, 0]));
        assert_eq!(quote_len(1500, 576, 12), 536);
        assert_eq!(quote_len(28, 576, 0), 28);
    }
}
