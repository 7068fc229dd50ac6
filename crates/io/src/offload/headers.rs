//! Locates the headers of the frames that offloads handle.

use super::LinkType;
use castanet_wire::extension::bit;
use castanet_wire::headers::{Headers, Layer, frame_payload};
use castanet_wire::{Ipv4Header, Ipv6Header, ether_type, ip_proto};

/// The extension headers behind which the kernel finds TCP or UDP.
const SKIPPED: u16 =
    bit(ip_proto::HOP_BY_HOP) | bit(ip_proto::ROUTING) | bit(ip_proto::DESTINATION_OPTIONS);

/// Locates the headers of a frame. `None` for anything but whole TCP and UDP packets directly
/// inside IP, which is all that the kernel hands over as a super-frame without tunnels.
#[inline]
pub(crate) fn find_headers(frame: &[u8], link: LinkType) -> Option<Headers> {
    let network = match link {
        LinkType::Ip => 0,
        LinkType::Ethernet => ip_offset(frame)?,
    };
    let headers = match frame.get(network)? >> 4 {
        4 => {
            let plain = Headers::plain(frame, network);
            plain.or_else(|| Headers::of(with_transport(frame, network, false)?, network))?
        }
        _ => {
            let plain = Headers::plain_ip6(frame, network);
            plain.or_else(|| Headers::of(with_transport(frame, network, true)?, network))?
        }
    };
    let is_taken = !headers.is_fragment
        && headers.extensions & !SKIPPED == 0
        && matches!(headers.upper, Layer::Tcp | Layer::Udp);
    is_taken.then_some(headers)
}

/// The frame again, unless the first protocol in its IP header says that neither TCP nor UDP
/// follows.
#[inline]
fn with_transport(frame: &[u8], network: usize, is_ip6: bool) -> Option<&[u8]> {
    let offset = if is_ip6 { Ipv6Header::NEXT_HEADER } else { Ipv4Header::PROTOCOL };
    let protocol = *frame.get(network + offset)?;
    let may_follow =
        matches!(protocol, ip_proto::TCP | ip_proto::UDP) || is_ip6 && bit(protocol) & SKIPPED != 0;
    may_follow.then_some(frame)
}

/// Offset of the IP header in an Ethernet frame with any number of VLAN tags.
#[inline]
pub(crate) fn ip_offset(frame: &[u8]) -> Option<usize> {
    let (kind, offset) = frame_payload(frame, usize::MAX)?;
    matches!(kind, ether_type::IPV4 | ether_type::IPV6).then_some(offset)
}
