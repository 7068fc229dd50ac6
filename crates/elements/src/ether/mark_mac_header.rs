//! `MarkMACHeader`: sets the link-layer header annotation.

use castanet_element::fate::none_taken;
use castanet_element::prelude::*;

/// Sets the link-layer header annotation of each packet.
///
/// Packets that end before the end of the header stay as they are.
///
/// ```click
/// in -> MarkMACHeader(2) -> out
/// > in  hex 01 02 03 04
/// < out hex 01 02 03 04 ; mac 2
/// ```
///
/// ```click
/// in -> MarkMACHeader(OFFSET 0, LENGTH 14) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp ; mac 0 network 14
/// ```
#[derive(Element)]
#[element(room = "ether")]
pub struct MarkMACHeader {
    /// Offset of the link-layer header, in bytes.
    #[arg(default = 0)]
    offset: u32,
    /// Length of the link-layer header, in bytes; the network header is set behind it. With 0 the
    /// network header stays as it is.
    #[arg(default = 0)]
    length: u32,
}

impl PerPacket for MarkMACHeader {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    const BYTE_ACCESS: ByteAccess = ByteAccess::Moves;

    fn byte_length(&self) -> Option<usize> {
        (self.offset == 0 && self.length == 0).then_some(0)
    }

    fn handle_bytes(&self, _: &mut (), bytes: &mut BurstBytes, fates: &mut [u8]) -> u8 {
        // The link header of packets without descriptors is where they were received.
        if bytes.is_at_start() { 0 } else { none_taken(fates) }
    }

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let end = self.offset as usize + self.length as usize;
        if end > packet.len() {
            return;
        }
        packet.set_mac_header(self.offset as isize);
        if self.length > 0 {
            packet.set_network_header(end as isize, 0);
        }
    }
}
