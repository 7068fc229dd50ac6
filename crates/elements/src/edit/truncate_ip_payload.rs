//! `TruncateIPPayload`: shortens the payload of IPv4 packets.

use super::truncate::shorten;
use castanet_element::prelude::*;
use castanet_element::wire::{Icmp, Ipv4Header, Tcp, Udp, icmp, ip_proto};

/// Truncates the payload of IPv4 packets to a maximum length.
///
/// The header of TCP, UDP or ICMP does not belong to the payload, unless TRANSPORT is false; later
/// fragments have none. The IPv4 header stays as it is, its length field too. A packet without a marked
/// IPv4 header keeps its first LENGTH bytes. The number of bytes removed is added to the extra length
/// annotation, unless EXTRA_LENGTH is false.
///
/// ```click
/// a -> TruncateIPPayload -> x
/// b -> TruncateIPPayload(2, false) -> y
/// c -> TruncateIPPayload(LENGTH 2) -> z
/// > a 1.0.0.1:1 > 2.0.0.2:2 udp "data"
/// > b 1.0.0.1 > 2.0.0.2 proto 99 data 616263
/// > c hex 01 02 03
/// > c hex 01 02
/// < x 1.0.0.1:1 > 2.0.0.2:2 udp "data" short 4
/// < y 1.0.0.1 > 2.0.0.2 proto 99 data 616263 short 1
/// < z hex 01 02
/// < z hex 01 02
/// ```
#[derive(Element)]
#[element(room = "edit", headers = Pass)]
pub struct TruncateIPPayload {
    /// The maximum length of the payload, in bytes.
    #[arg(default = 0)]
    length: u16,
    /// Whether the transport header stays beside the payload.
    #[arg(default = true)]
    transport: bool,
    /// Whether to add the number of bytes removed to the extra length annotation.
    #[arg(keyword, default = true)]
    extra_length: bool,
}

/// The length of the transport header behind an IPv4 header, in bytes.
fn transport_len(ip: &Ipv4Header, segment: &[u8]) -> usize {
    match ip.protocol() {
        _ if !ip.is_first_fragment() => 0,
        ip_proto::TCP => {
            Tcp::from_prefix(segment).map_or(Tcp::LEN, |(tcp, _)| tcp.header_len().max(Tcp::LEN))
        }
        ip_proto::UDP => Udp::LEN,
        ip_proto::ICMP => {
            Icmp::from_prefix(segment).map_or(0, |(it, _)| icmp::header_len(it.kind()))
        }
        _ => 0,
    }
}

impl PerPacket for TruncateIPPayload {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn packet(&self, (): &mut (), packet: &mut Packet) {
        let (length, bytes) = (usize::from(self.length), packet.network_bytes());
        let (total, headers) = match packet.ipv4_header() {
            Some(ip) => {
                let header = ip.header_len().max(Ipv4Header::LEN);
                let segment = bytes.get(header..).unwrap_or_default();
                let transport = if self.transport { transport_len(ip, segment) } else { 0 };
                (bytes.len(), header + transport)
            }
            None => (packet.len(), 0),
        };
        let removed = total.saturating_sub(headers + length);
        let kept = packet.len().saturating_sub(removed);
        shorten(packet, kept, self.extra_length);
    }
}
