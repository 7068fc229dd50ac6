//! Frames of neighbour discovery: written, and read as far as they can be believed.

use crate::icmp6::{self, LinkAddress, Malformed, Neighbor};
use crate::{Ethernet, Ipv6Header, MacAddr, ether_type, ip_proto};
use std::net::Ipv6Addr;

/// Length of the IPv6 header of all these messages.
pub const HEADER_LEN: usize = Ipv6Header::LEN;
const MESSAGE: usize = Neighbor::LEN + LinkAddress::LEN;
/// Length of a frame with one option.
pub const FRAME_LEN: usize = Ethernet::LEN + Ipv6Header::LEN + MESSAGE;

/// A frame with a message and one option, between these Ethernet and these IPv6 addresses.
pub fn frame(
    (src_mac, dst_mac): (MacAddr, MacAddr),
    (src, dst): (Ipv6Addr, Ipv6Addr),
    mut message: Neighbor,
    option: LinkAddress,
) -> [u8; FRAME_LEN] {
    let ether = Ethernet::new(dst_mac, src_mac, ether_type::IPV6);
    let mut ip = Ipv6Header::new(ip_proto::ICMPV6, src, dst, MESSAGE as u16);
    ip.set_hop_limit(icmp6::ON_LINK);
    message.update_checksum(ip.pseudo(ip_proto::ICMPV6, MESSAGE), option.bytes());
    let mut frame = [0; FRAME_LEN];
    let parts: [&[u8]; 4] = [ether.bytes(), ip.bytes(), message.bytes(), option.bytes()];
    let mut rest = &mut frame[..];
    for part in parts {
        let (place, after) = rest.split_at_mut(part.len());
        place.copy_from_slice(part);
        rest = after;
    }
    frame
}

/// A message that can be believed.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// The frame's header.
    pub ether: &'a Ethernet,
    /// The packet's header.
    pub ip: &'a Ipv6Header,
    /// The message.
    pub message: &'a Neighbor,
    options: &'a [u8],
}

impl Heard<'_> {
    /// The Ethernet address that the first option of `kind` tells.
    pub fn link_address(&self, kind: u8) -> Result<Option<MacAddr>, Malformed> {
        icmp6::link_address(self.options, kind)
    }
}

/// The message of this type in a frame, if all is as RFC 4861, 7.1 wants it, but for its options.
pub fn read(frame: &[u8], kind: u8) -> Option<Heard<'_>> {
    let (ether, rest) = Ethernet::from_prefix(frame)?;
    let (ip, rest) = Ipv6Header::from_prefix(rest)?;
    let payload = rest.get(..ip.payload_len().into())?;
    let (message, options) = Neighbor::from_prefix(payload)?;
    let good = ether.ether_type() == ether_type::IPV6
        && ip.version() == 6
        && ip.next_header() == ip_proto::ICMPV6
        && ip.hop_limit() == icmp6::ON_LINK
        && (message.kind(), message.code()) == (kind, 0)
        && !message.target().is_multicast()
        && message.checksum_ok(ip.pseudo(ip_proto::ICMPV6, payload.len()), options);
    good.then_some(Heard { ether, ip, message, options })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_and_nothing_else() {
        let (a, b) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let ips: [Ipv6Addr; 2] = ["2001:db8::1", "2001:db8::2"].map(|ip| ip.parse().expect(ip));
        let message = Neighbor::new(icmp6::NEIGHBOR_ADVERTISEMENT, Neighbor::SOLICITED, ips[0]);
        let option = LinkAddress::new(icmp6::TARGET_LINK_ADDRESS, a);
        let frame = frame((a, b), (ips[0], ips[1]), message, option);
        let heard = read(&frame, icmp6::NEIGHBOR_ADVERTISEMENT).expect("a message");
        assert_eq!(
            (heard.ether.src(), heard.ip.dst(), heard.message.target()),
            (a, ips[1], ips[0])
        );
        assert_eq!(heard.link_address(icmp6::TARGET_LINK_ADDRESS), Ok(Some(a)));
        assert!(read(&frame, icmp6::NEIGHBOR_SOLICITATION).is_none());
        for len in 0..FRAME_LEN {
            assert!(read(&frame[..len], icmp6::NEIGHBOR_ADVERTISEMENT).is_none(), "{len} bytes");
        }
        // Any single wrong bit, but for addresses of the link and the traffic class and label.
        for bit in 12 * 8..FRAME_LEN * 8 {
            let mut wrong = frame;
            wrong[bit / 8] ^= 1 << (bit % 8);
            let unseen = (14 * 8..18 * 8).contains(&bit) && bit / 4 != 14 * 2 + 1;
            let read = read(&wrong, icmp6::NEIGHBOR_ADVERTISEMENT).is_some();
            assert!(unseen || !read, "bit {bit}");
        }
    }
}
