//! `MarkIPHeader`: sets the IPv4 header annotation.

use castanet_element::fate::none_taken;
use castanet_element::prelude::*;
use castanet_element::wire::Ipv4Header;
use castanet_element::wire::ipv4::claimed_header_len;

/// Sets the network header annotation of each packet to its IPv4 header.
///
/// The element reads only the header length; `CheckIPHeader` checks the whole
/// header and sets the destination annotation too. A packet that ends before
/// OFFSET stays unmarked.
///
/// ```click
/// in -> MarkIPHeader(14) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// > in  hex 01 02 03
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp ; network 14
/// < out hex 01 02 03 ; network -
/// ```
#[derive(Element)]
#[element(room = "ip", gives = "ip", headers = Mark(MarkedHeader::Ip))]
pub struct MarkIPHeader {
    /// Offset of the IPv4 header, in bytes.
    #[arg(default = 0)]
    offset: u32,
}

impl PerPacket for MarkIPHeader {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    const BYTE_ACCESS: ByteAccess = ByteAccess::Reads;

    fn byte_length(&self) -> Option<usize> {
        Some(self.offset as usize + Ipv4Header::LEN)
    }

    fn handle_bytes(&self, _: &mut (), bytes: &mut BurstBytes, fates: &mut [u8]) -> u8 {
        let offset = self.offset as usize;
        let is_plain = |bytes: &[u8]| {
            let header = bytes.get(offset..).and_then(Ipv4Header::from_prefix);
            header.is_some_and(|(header, _)| header.is_plain())
        };
        let all = bytes.iter().fold(true, |all, bytes| all & is_plain(bytes));
        bytes.mark_network(offset);
        // One that is not would keep the others.
        if all { 0 } else { none_taken(fates) }
    }

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let bytes = packet.bytes().get(self.offset as usize..).unwrap_or(&[]);
        if let Some(length) = claimed_header_len(bytes) {
            let length = length.min(bytes.len());
            packet.set_network_header(self.offset as isize, length);
        }
    }
}
