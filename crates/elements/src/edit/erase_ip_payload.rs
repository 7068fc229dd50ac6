//! `EraseIPPayload`: overwrites the payload of TCP and UDP packets with zeros.

use castanet_element::prelude::*;
use castanet_element::wire::{Tcp, Udp, ip_proto};

/// Overwrites the payload of TCP and UDP packets with zeros.
///
/// The packets keep their length, and their checksum becomes 0. Of a later fragment the element
/// overwrites everything behind the IPv4 header. ICMP packets pass unchanged.
///
/// ```click
/// in -> e :: EraseIPPayload -> out
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp "data"
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp "data"
/// > in  1.0.0.1 > 2.0.0.2 udp frag 8 data 616263
/// > in  1.0.0.1 > 2.0.0.2 icmp "data"
/// > in  1.0.0.1 > 2.0.0.2 proto 99 data 616263
/// < out 1.0.0.1:1 > 2.0.0.2:2 udp data 00000000 nocheck
/// < out 1.0.0.1:1 > 2.0.0.2:2 tcp data 00000000 nocheck
/// < out 1.0.0.1 > 2.0.0.2 udp frag 8 data 000000
/// < out 1.0.0.1 > 2.0.0.2 icmp "data"
/// = e.drops.other_protocol 1
/// ```
#[derive(Element)]
#[element(room = "edit")]
pub struct EraseIPPayload;

#[derive(Fate)]
pub enum EraseIPPayloadExit {
    /// Packets of TCP and UDP without their payload, and ICMP packets.
    Erased,
    /// Packets of other protocols. Sort them out with an IPClassifier before.
    #[drop]
    OtherProtocol,
}

impl PerPacket for EraseIPPayload {
    type On = on::Ipv4;
    type Local = ();
    type Fate = EraseIPPayloadExit;

    fn packet(&self, (): &mut (), mut ip: Ipv4) -> EraseIPPayloadExit {
        let (protocol, is_first) = (ip.protocol(), ip.is_first_fragment());
        let header_len = ip.header_len();
        let transport = match protocol {
            ip_proto::ICMP => return EraseIPPayloadExit::Erased,
            ip_proto::TCP | ip_proto::UDP if !is_first => 0,
            ip_proto::TCP => Tcp::from_prefix_mut(ip.payload_mut()).map_or(Tcp::LEN, |(tcp, _)| {
                tcp.set_checksum(0);
                tcp.header_len()
            }),
            ip_proto::UDP => {
                if let Some((udp, _)) = Udp::from_prefix_mut(ip.payload_mut()) {
                    udp.set_checksum(0);
                }
                Udp::LEN
            }
            _ => return EraseIPPayloadExit::OtherProtocol,
        };
        let packet = ip.into_packet();
        let network = packet.network_offset().unwrap_or(0);
        let payload = network.saturating_add_unsigned(header_len + transport);
        let payload = usize::try_from(payload).unwrap_or(0);
        packet.bytes_mut().get_mut(payload..).unwrap_or_default().fill(0);
        EraseIPPayloadExit::Erased
    }
}
