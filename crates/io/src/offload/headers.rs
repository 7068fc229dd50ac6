//! Locates the headers of the frames that offloads handle.

use super::LinkType;
use castanet_wire::extension::bit;
use castanet_wire::headers::{Headers, Layer, frame_payload};
use castanet_wire::{ether_type, ip_proto};

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
    let plain = Headers::plain(frame, network);
    plain.or_else(|| Headers::of(frame, network)).filter(|headers| {
        !headers.is_fragment
            && headers.extensions & !SKIPPED == 0
            && matches!(headers.upper, Layer::Tcp | Layer::Udp)
    })
}

/// Offset of the IP header in an Ethernet frame with any number of VLAN tags.
#[inline]
pub(crate) fn ip_offset(frame: &[u8]) -> Option<usize> {
    let (kind, offset) = frame_payload(frame, usize::MAX)?;
    matches!(kind, ether_type::IPV4 | ether_type::IPV6).then_some(offset)
}
