//! `StripTCPHeader`: removes the headers of TCP segments.

use crate::ip::transport::strip_to;
use castanet_element::prelude::*;

/// Removes all bytes before the payload from TCP segments.
///
/// The bytes stay in the headroom of the packet: `UnstripIPHeader` restores
/// those from the IP header on, `UnstripTransportHeader` those from the TCP
/// header on.
///
/// ```click
/// in -> s :: StripTCPHeader -> out
/// > in  1.0.0.1 > 2.0.0.2 tcp "GET /"
/// < out hex 47 45 54 20 2f ; network -40
/// > in  1.0.0.1 > 2.0.0.2 udp
/// = s.drops.not_tcp 1
/// ```
#[derive(Element)]
#[element(room = "tcp")]
pub struct StripTCPHeader;

impl PerPacket for StripTCPHeader {
    type On = on::Tcp;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), tcp: TcpPacket) {
        let len = tcp.header_len();
        let packet = tcp.into_packet();
        strip_to(packet, packet.transport_offset().unwrap_or(0).saturating_add_unsigned(len));
    }
}
