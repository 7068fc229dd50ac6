//! Ethernet frames of IPv6 neighbour discovery (RFC 4861): builds and validates them.

use crate::icmp6::{self, LinkAddress, MalformedOptions, Neighbor};
use crate::{Ethernet, Ipv6Header, MacAddr, ether_type, ip_proto};
use std::net::Ipv6Addr;

/// Length of the IPv6 header of a neighbour discovery frame, which has no extension headers.
pub const HEADER_LEN: usize = Ipv6Header::LEN;
/// Length of a message with one option.
const MESSAGE_LEN: usize = Neighbor::LEN + LinkAddress::LEN;
/// Length of a frame with one option.
pub const FRAME_LEN: usize = Ethernet::LEN + Ipv6Header::LEN + MESSAGE_LEN;

/// Makes a frame with a message and one option, from and to these Ethernet and IPv6 addresses.
pub fn frame(
    (src_mac, dst_mac): (MacAddr, MacAddr),
    (src, dst): (Ipv6Addr, Ipv6Addr),
    mut message: Neighbor,
    option: LinkAddress,
) -> [u8; FRAME_LEN] {
    let ether = Ethernet::new(dst_mac, src_mac, ether_type::IPV6);
    let mut ip = Ipv6Header::new(ip_proto::ICMPV6, src, dst, MESSAGE_LEN as u16);
    ip.set_hop_limit(icmp6::ND_HOP_LIMIT);
    message.update_checksum(ip.pseudo(ip_proto::ICMPV6, MESSAGE_LEN), option.bytes());
    let mut frame = [0; FRAME_LEN];
    let parts: [&[u8]; 4] = [ether.bytes(), ip.bytes(), message.bytes(), option.bytes()];
    let mut rest = &mut frame[..];
    for part in parts {
        let (target, after) = rest.split_at_mut(part.len());
        target.copy_from_slice(part);
        rest = after;
    }
    frame
}

/// A validated neighbour discovery message.
#[derive(Clone, Copy, Debug)]
pub struct NeighborMessage<'a> {
    /// The Ethernet header.
    pub ether: &'a Ethernet,
    /// The IPv6 header.
    pub ip: &'a Ipv6Header,
    /// The message.
    pub message: &'a Neighbor,
    options: &'a [u8],
}

impl NeighborMessage<'_> {
    /// The Ethernet address in the first option of type `kind`.
    pub fn link_address(&self, kind: u8) -> Result<Option<MacAddr>, MalformedOptions> {
        icmp6::link_address(self.options, kind)
    }
}

/// Parses a frame with a message of type `kind`. `None` if it fails a check of RFC 4861, 7.1;
/// the options are not checked.
pub fn parse(frame: &[u8], kind: u8) -> Option<NeighborMessage<'_>> {
    let (ether, rest) = Ethernet::from_prefix(frame)?;
    let (ip, rest) = Ipv6Header::from_prefix(rest)?;
    let payload = rest.get(..ip.payload_len().into())?;
    let (message, options) = Neighbor::from_prefix(payload)?;
    let valid = ether.ether_type() == ether_type::IPV6
        && ip.version() == 6
        && ip.next_header() == ip_proto::ICMPV6
        && ip.hop_limit() == icmp6::ND_HOP_LIMIT
        && (message.kind(), message.code()) == (kind, 0)
        && !message.target().is_multicast()
        && message.checksum_ok(ip.pseudo(ip_proto::ICMPV6, payload.len()), options);
    valid.then_some(NeighborMessage { ether, ip, message, options })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_messages_are_parsed() {
        let (a, b) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let ips: [Ipv6Addr; 2] = ["2001:db8::1", "2001:db8::2"].map(|ip| ip.parse().expect(ip));
        let message = Neighbor::new(icmp6::NEIGHBOR_ADVERTISEMENT, Neighbor::SOLICITED, ips[0]);
        let option = LinkAddress::new(icmp6::TARGET_LINK_ADDRESS, a);
        let frame = frame((a, b), (ips[0], ips[1]), message, option);
        let parsed = parse(&frame, icmp6::NEIGHBOR_ADVERTISEMENT).expect("a message");
        assert_eq!(
            (parsed.ether.src(), parsed.ip.dst(), parsed.message.target()),
            (a, ips[1], ips[0])
        );
        assert_eq!(parsed.link_address(icmp6::TARGET_LINK_ADDRESS), Ok(Some(a)));
        assert!(parse(&frame, icmp6::NEIGHBOR_SOLICITATION).is_none());
        for len in 0..FRAME_LEN {
            assert!(parse(&frame[..len], icmp6::NEIGHBOR_ADVERTISEMENT).is_none(), "{len} bytes");
        }
        // Any single wrong bit, except in Ethernet addresses, traffic class and flow label.
        for bit in 12 * 8..FRAME_LEN * 8 {
            let mut wrong = frame;
            wrong[bit / 8] ^= 1 << (bit % 8);
            let unchecked = (14 * 8..18 * 8).contains(&bit) && bit / 4 != 14 * 2 + 1;
            let parsed = parse(&wrong, icmp6::NEIGHBOR_ADVERTISEMENT).is_some();
            assert!(unchecked || !parsed, "bit {bit}");
        }
    }
}
