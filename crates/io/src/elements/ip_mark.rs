//! Marks the IP header of packets from a device.

use crate::offload;
use castanet_packet::Packet;
use castanet_wire::{Ipv4Header, Ipv6Header};

/// Marks the IP header after the Ethernet header and its VLAN tags; false if the packet is not
/// IP.
pub(super) fn mark_in_ethernet(packet: &mut Packet) -> bool {
    offload::ip_offset(packet.bytes()).is_some_and(|offset| mark_at(packet, offset))
}

/// Marks the IP header at `offset`; false if it is not complete and valid. A snap length may have
/// cut off the rest of the packet.
pub(super) fn mark_at(packet: &mut Packet, offset: usize) -> bool {
    let Some(ip) = packet.bytes().get(offset..) else { return false };
    let len = match ip.first().map(|byte| byte >> 4) {
        Some(4) => Ipv4Header::from_prefix(ip).and_then(|(header, rest)| {
            header.split_options(rest)?;
            let is_valid = header.header_len() <= usize::from(header.total_len());
            is_valid.then(|| header.header_len())
        }),
        Some(6) => Ipv6Header::from_prefix(ip).map(|_| Ipv6Header::LEN),
        _ => None,
    };
    let Some(len) = len else { return false };
    packet.set_network_header(offset as isize, len);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn ip(total: u16) -> Vec<u8> {
        let ip = Ipv4Header::new(1, Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, total);
        [&ip.bytes()[..], &[0; 8]].concat()
    }

    #[test]
    fn only_complete_headers_are_marked() {
        for (bytes, good) in [(ip(28), true), (ip(20), true), (ip(29), true), (ip(19), false)] {
            assert_eq!(mark_at(&mut Packet::from_bytes(&bytes), 0), good, "{bytes:?}");
        }
        for len in 0..20 {
            assert!(!mark_at(&mut Packet::from_bytes(&ip(28)[..len]), 0));
        }
    }

    #[test]
    fn vlan_tags_are_skipped() {
        let front = [0; 12];
        let tags = [&front[..], &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0], &ip(28)].concat();
        let mut packet = Packet::from_bytes(&tags);
        assert!(mark_in_ethernet(&mut packet));
        assert_eq!(packet.network_offset(), Some(22));
        for (kind, good) in [([8, 0], true), ([0x86, 0xdd], true), ([8, 6], false)] {
            let mut packet = Packet::from_bytes(&[&front[..], &kind, &ip(28)].concat());
            assert_eq!(mark_in_ethernet(&mut packet), good);
        }
        assert!(!mark_in_ethernet(&mut Packet::from_bytes(&tags[..17])));
    }
}
