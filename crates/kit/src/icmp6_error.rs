//! Generation of ICMPv6 errors: whether one may be sent, and how much of the packet it quotes (RFC
//! 4443, section 2.4).

use castanet_wire::{Icmp, Ipv6Header, extension, icmp6, ip_proto};

/// The reason why no error may be sent about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suppression {
    /// The packet has no complete IPv6 header.
    Malformed,
    /// The packet is an ICMPv6 error or a redirect itself, or too short to tell.
    AboutError,
    /// The destination is a multicast address.
    GroupDestination,
    /// The packet came as a broadcast or multicast of the link.
    LinkGroup,
    /// The source is not the address of a single host.
    BadSource,
    /// The packet is a later fragment, so that its ICMPv6 type is unknown.
    LaterFragment,
}

/// Parameter problem: an unknown option, which its sender may probe for.
const UNKNOWN_OPTION: u8 = 2;

/// Whether an error of this type and code may be sent about a `packet`, from its IPv6 header on.
///
/// `link_group` tells whether the packet came as a broadcast or multicast of its link.
pub fn check_allowed(
    packet: &[u8],
    kind: u8,
    code: u8,
    link_group: bool,
) -> Result<(), Suppression> {
    let (header, rest) = Ipv6Header::from_prefix(packet).ok_or(Suppression::Malformed)?;
    let upper = extension::upper_layer(header.next_header(), rest);
    if upper.protocol == ip_proto::ICMPV6 {
        if upper.is_later_fragment() {
            return Err(Suppression::LaterFragment);
        }
        let message = Icmp::from_prefix(&rest[upper.offset..]);
        let error =
            |(icmp, _): (&Icmp, _)| icmp6::is_error(icmp.kind()) || icmp.kind() == icmp6::REDIRECT;
        if message.is_none_or(error) {
            return Err(Suppression::AboutError);
        }
    }
    // RFC 4443, 2.4 (e.3): path MTU discovery works for multicast, too.
    let about_groups =
        kind == icmp6::TOO_BIG || (kind, code) == (icmp6::PARAMETER_PROBLEM, UNKNOWN_OPTION);
    if header.dst().is_multicast() && !about_groups {
        return Err(Suppression::GroupDestination);
    }
    if link_group && !about_groups {
        return Err(Suppression::LinkGroup);
    }
    let src = header.src();
    if src.is_multicast() || src.is_unspecified() || src.is_loopback() {
        return Err(Suppression::BadSource);
    }
    Ok(())
}

/// The longest error (RFC 4443, 2.4 (c)): the minimum IPv6 MTU.
pub const MAX_ERROR_LEN: usize = 1280;

/// How many bytes of a packet of `length` bytes fit into an error, after an IPv6 header and `head`
/// further bytes.
pub fn quote_len(length: usize, head: usize) -> usize {
    length.min(MAX_ERROR_LEN - Ipv6Header::LEN - head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    const HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    const GROUP: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

    fn packet(next: u8, src: Ipv6Addr, dst: Ipv6Addr, payload: &[u8]) -> Vec<u8> {
        [&Ipv6Header::new(next, src, dst, payload.len() as u16).0[..], payload].concat()
    }

    fn verdict(packet: &[u8]) -> Result<(), Suppression> {
        check_allowed(packet, icmp6::TIME_EXCEEDED, 0, false)
    }

    #[test]
    fn every_suppression_has_its_reason() {
        use Suppression::*;
        let icmp = |kind: u8| [kind, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(verdict(&packet(17, HOST, HOST, &[])), Ok(()));
        assert_eq!(verdict(&packet(58, HOST, HOST, &icmp(icmp6::ECHO))), Ok(()));
        assert_eq!(verdict(&[0x60; 39]), Err(Malformed));
        for kind in [1, 2, 3, 4, 100, icmp6::REDIRECT] {
            assert_eq!(verdict(&packet(58, HOST, HOST, &icmp(kind))), Err(AboutError));
            let hidden = [&[58, 0, 0, 0, 0, 0, 0, 0][..], &icmp(kind)].concat();
            assert_eq!(verdict(&packet(60, HOST, HOST, &hidden)), Err(AboutError));
        }
        assert_eq!(verdict(&packet(58, HOST, HOST, &[128, 0, 0])), Err(AboutError));
        let later = [58, 0, 0, 8, 0, 0, 0, 1, 1, 1, 1, 1];
        assert_eq!(verdict(&packet(44, HOST, HOST, &later)), Err(LaterFragment));
        assert_eq!(verdict(&packet(17, HOST, GROUP, &[])), Err(GroupDestination));
        for src in [GROUP, Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST] {
            assert_eq!(verdict(&packet(17, src, HOST, &[])), Err(BadSource));
        }
        let plain = packet(17, HOST, HOST, &[]);
        assert_eq!(check_allowed(&plain, icmp6::UNREACHABLE, 0, true), Err(LinkGroup));
        for (kind, code) in [(icmp6::TOO_BIG, 0), (icmp6::PARAMETER_PROBLEM, 2)] {
            assert_eq!(check_allowed(&packet(17, HOST, GROUP, &[]), kind, code, true), Ok(()));
        }
        assert_eq!((quote_len(100, 8), quote_len(9000, 8)), (100, 1232));
    }
}
