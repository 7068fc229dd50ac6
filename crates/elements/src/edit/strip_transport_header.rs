//! `StripTransportHeader`: removes the headers up to the transport payload.

use crate::ip::transport::strip_to;
use castanet_element::prelude::*;
use castanet_element::wire::{Icmp, Tcp, Udp, ip_proto};

/// Removes all bytes before the TCP, UDP or ICMP payload from each packet.
///
/// For other protocols and for later fragments it removes all bytes up to the
/// end of the IPv4 header. The bytes stay in the headroom of the packet;
/// `UnstripIPHeader` restores those from the IPv4 header on.
///
/// ```click
/// in -> StripTransportHeader -> out
/// > in  1.0.0.1 > 2.0.0.2 udp "abc"
/// > in  1.0.0.1 > 2.0.0.2 tcp "abc"
/// > in  1.0.0.1 > 2.0.0.2 icmp "abc"
/// > in  1.0.0.1 > 2.0.0.2 proto 99 data 616263
/// > in  1.0.0.1 > 2.0.0.2 udp frag 8 data 616263
/// < out hex 61 62 63 ; network -28
/// < out hex 61 62 63 ; network -40
/// < out hex 61 62 63
/// < out hex 61 62 63
/// < out hex 61 62 63 ; network -20
/// ```
#[derive(Element)]
#[element(room = "edit", alias = "StripUDPHeader", headers = Unknown)]
pub struct StripTransportHeader;

impl PerPacket for StripTransportHeader {
    type On = on::Ipv4;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), ip: Ipv4) {
        let transport = match ip.protocol() {
            _ if !ip.is_first_fragment() => 0,
            ip_proto::TCP => Tcp::from_prefix(ip.payload()).map_or(0, |(tcp, _)| tcp.header_len()),
            ip_proto::UDP => Udp::LEN,
            ip_proto::ICMP => Icmp::LEN,
            _ => 0,
        };
        let len = ip.header_len() + transport;
        let packet = ip.into_packet();
        strip_to(packet, packet.network_offset().unwrap_or(0).saturating_add_unsigned(len));
    }
}
