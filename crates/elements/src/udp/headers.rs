//! The headers that `UDPIPEncap` and `DynamicUDPIPEncap` prepend.

use crate::ip::encap::EncapExit;
use castanet_element::prelude::*;
use castanet_element::wire::checksum::Sum;
use castanet_element::wire::{Ipv4Header, Udp, ip_proto};

/// Time to live of the packets.
const TTL: u8 = 250;
/// Length of both headers, in bytes.
const HEADERS_LEN: usize = Ipv4Header::LEN + Udp::LEN;

/// The length of a packet with both headers; `None` if it is beyond 65535.
#[inline(always)]
pub(super) fn total_len(packet: &Packet) -> Option<u16> {
    u16::try_from(HEADERS_LEN + packet.len()).ok()
}

/// Prepends a UDP header and an IPv4 header of this total length and identification to a packet.
#[inline(always)]
pub(super) fn push(
    packet: &mut Packet,
    (src, sport): (Ipv4Addr, u16),
    (dst, dport): (Ipv4Addr, u16),
    (total_len, id): (u16, u16),
    has_checksum: bool,
) -> EncapExit {
    packet.push_front(HEADERS_LEN);
    if let Some((ip, rest)) = Ipv4Header::from_prefix_mut(packet.bytes_mut())
        && let Some((udp, payload)) = Udp::from_prefix_mut(rest)
    {
        ip.fill((src, dst), (TTL, ip_proto::UDP), (total_len, id));
        let addresses = Sum::new().u32(src.to_bits()).u32(dst.to_bits());
        udp.fill((sport, dport), has_checksum.then_some(addresses), payload);
    }
    packet.mark_ipv4(0, Ipv4Header::LEN as u16, total_len);
    EncapExit::Encapsulated
}
