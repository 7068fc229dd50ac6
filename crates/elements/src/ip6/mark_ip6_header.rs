//! `MarkIP6Header`: where the IPv6 header is.

use castanet_engine::prelude::*;
use castanet_engine::wire::Ipv6Header;

/// Says of each packet where its IPv6 header starts.
///
/// Looks at nothing but whether the packet is long enough, and stays out of
/// extension headers; `CheckIP6Header` looks at all.
///
/// ```click
/// in -> MarkIP6Header(14) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1::1 > 2::2 udp
/// > in  hex 01 02 03
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1::1 > 2::2 udp ; network 14
/// < out hex 01 02 03 ; network -
/// ```
#[derive(Element)]
#[element(room = "ip6", gives = "ip6")]
pub struct MarkIP6Header {
    /// Where the header starts.
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
