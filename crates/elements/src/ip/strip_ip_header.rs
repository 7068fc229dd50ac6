//! `StripIPHeader`: removes the IPv4 header.

use super::transport::strip_to;
use castanet_element::prelude::*;

/// Removes the IPv4 header with its options, and all bytes before it, from each packet.
///
/// The bytes stay in the headroom of the packet; `UnstripIPHeader` restores
/// the header.
///
/// ```click
/// in -> StripIPHeader -> out
/// > in  1.0.0.1 > 2.0.0.2 proto 9 ipopt 0x01010100 data 616263
/// > in  1.0.0.1 > 2.0.0.2 udp hl 60
/// < out hex 61 62 63 ; network -24
/// < out hex ; length 0
/// ```
#[derive(Element)]
#[element(room = "ip", headers = Unknown)]
pub struct StripIPHeader;

impl PerPacket for StripIPHeader {
    type On = on::Ipv4;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), ip: Ipv4) {
        let len = ip.header_len();
        let packet = ip.into_packet();
        let end = packet.network_offset().unwrap_or(0).saturating_add_unsigned(len);
        strip_to(packet, end);
    }
}
