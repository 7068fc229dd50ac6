//! `MarkIP6Header`: sets the IPv6 header annotation.

use castanet_element::prelude::*;
use castanet_element::wire::Ipv6Header;

/// Sets the network header annotation of each packet to its IPv6 header.
///
/// The element checks only that the packet is long enough, and does not read
/// extension headers; `CheckIP6Header` checks the whole header. A packet that
/// is too short stays unmarked.
///
/// ```click
/// in -> MarkIP6Header(14) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1::1 > 2::2 udp
/// > in  hex 01 02 03
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1::1 > 2::2 udp ; network 14
/// < out hex 01 02 03 ; network -
/// ```
#[derive(Element)]
#[element(room = "ip6", gives = "ip6", headers = Mark(MarkedHeader::Ip6))]
pub struct MarkIP6Header {
    /// Offset of the IPv6 header, in bytes.
    #[arg(default = 0)]
    offset: u32,
}

impl PerPacket for MarkIP6Header {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        let offset = self.offset as usize;
        if packet.len() >= offset.saturating_add(Ipv6Header::LEN) {
            packet.set_network_header(offset as isize, Ipv6Header::LEN);
        }
    }
}
