//! `MarkIPHeader`: where the IPv4 header is.

use castanet_engine::prelude::*;
use castanet_engine::wire::Ipv4Header;

/// Says of each packet where its IPv4 header starts.
///
/// Looks at nothing but the header's length; `CheckIPHeader` looks at all of
/// it and sets the destination annotation too. A packet that ends before its
/// header does stays unmarked.
///
/// ```click
/// in -> MarkIPHeader(14) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// > in  hex 01 02 03
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp ; network 14
/// < out hex 01 02 03 ; network -
/// ```
#[derive(Element)]
#[element(room = "ip", gives = "ip")]
pub struct MarkIPHeader {
    /// Where the header starts.
    #[arg(default = 0)]
    offset: u32,
}

impl PerPacket for MarkIPHeader {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let bytes = packet.bytes().get(self.offset as usize..).unwrap_or(&[]);
        if let Some((header, _)) = Ipv4Header::from_prefix(bytes) {
            let length = header.header_len();
            packet.set_network_header(self.offset as isize, length);
        }
    }
}
