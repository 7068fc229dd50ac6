//! `AutoMarkIPHeader`: sets the network header annotation of Ethernet frames.

use castanet_element::prelude::*;
use castanet_element::wire::headers::frame_payload;
use castanet_element::wire::ipv4::claimed_header_len;
use castanet_element::wire::{Ipv6Header, ether_type};

/// Sets the network header annotation of Ethernet frames with IPv4 or IPv6, also behind VLAN tags.
///
/// The element reads the EtherType and the header length; `CheckIPHeader` and `CheckIP6Header` check
/// the whole header and set the destination annotation too. Other frames pass as they are.
///
/// ```click
/// in -> AutoMarkIPHeader -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1::1 > 2::2 udp
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 5 1.0.0.1 > 2.0.0.2 udp
/// > in  hex 00 00 00 00 00 02 00 00 00 00 00 01 88 cc 02
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp ; network 14
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1::1 > 2::2 udp ; network 14
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 5 1.0.0.1 > 2.0.0.2 udp ; network 18
/// < out hex 00 00 00 00 00 02 00 00 00 00 00 01 88 cc 02 ; network -
/// ```
#[derive(Element)]
#[element(room = "ip", headers = Gives(FirstHeader::Ethernet, MarkedHeader::Unknown))]
pub struct AutoMarkIPHeader;

/// The most VLAN tags before an IP header: one of the provider, one of the customer.
const MOST_TAGS: usize = 2;

impl PerPacket for AutoMarkIPHeader {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        let Some((kind, offset)) = frame_payload(packet.bytes(), MOST_TAGS) else { return };
        let bytes = packet.bytes().get(offset..).unwrap_or(&[]);
        let length = match kind {
            ether_type::IPV4 => claimed_header_len(bytes),
            ether_type::IPV6 => Some(Ipv6Header::LEN),
            _ => None,
        };
        if let Some(length) = length.filter(|_| !bytes.is_empty()) {
            let length = length.min(bytes.len());
            packet.set_network_header(offset as isize, length);
        }
    }
}
