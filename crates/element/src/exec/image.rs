//! Images of packets: their first bytes and their annotations at one moment.

use castanet_packet::Packet;
use castanet_wire::sketch::{self, Layer};
use castanet_wire::{Ethernet, Ipv4Header, Ipv6Header, ether_type, headers};
use std::net::Ipv4Addr;

/// Bytes of a packet of which all are looked at for a line.
const MAX_PAYLOAD: usize = 2048;
/// Length of a line with a packet and its payload, in bytes.
const MAX_LINE: usize = 150;

/// A packet at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketImage {
    /// Length of the packet in bytes.
    pub length: usize,
    /// Its first bytes.
    pub bytes: Box<[u8]>,
    /// The layer of the header with which the bytes begin.
    pub layer: Layer,
    /// Offset of the network header from the first byte, if an element had marked it.
    pub network: Option<isize>,
    /// Its annotations.
    pub annotations: ImageAnnotations,
}

/// The annotations of a packet that elements decide by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImageAnnotations {
    /// The paint annotation.
    pub paint: u8,
    /// The destination annotation.
    pub dst: Ipv4Addr,
    /// The device annotation.
    pub device: u16,
    /// The packet type, numbered as in Linux.
    pub packet_type: u8,
}

impl PacketImage {
    /// Copies at most `most` bytes of a packet.
    pub fn of(packet: &Packet, most: usize) -> PacketImage {
        let bytes = packet.bytes();
        PacketImage {
            length: bytes.len(),
            bytes: bytes[..bytes.len().min(most)].into(),
            layer: first_layer(packet),
            network: packet.network_offset(),
            annotations: ImageAnnotations {
                paint: packet.paint(),
                dst: packet.dst(),
                device: packet.device(),
                packet_type: packet.packet_type() as u8,
            },
        }
    }

    /// The packet as one line, a sketch as in the examples of the manual; one that is longer than
    /// the bytes kept of it is described by its headers.
    pub fn text(&self) -> String {
        sketch::print_start(&self.bytes, self.length, self.layer)
    }

    /// The same; a packet whose line were long is described by its headers, too, with the word
    /// `badcheck` if its transport checksum is wrong.
    pub fn summary(&self) -> String {
        if self.bytes.len() > MAX_PAYLOAD {
            let start = &self.bytes[..MAX_PAYLOAD];
            return cut(sketch::print_start(start, self.length, self.layer));
        }
        let text = self.text();
        if text.len() <= MAX_LINE || self.length == 0 {
            return text;
        }
        let start = &self.bytes[..self.bytes.len().min(self.length - 1)];
        let headers = sketch::print_start(start, self.length, self.layer);
        if headers.len() >= text.len() {
            return cut(text);
        }
        match text.split(' ').any(|word| word == "badcheck") {
            true => headers + " badcheck",
            false => cut(headers),
        }
    }
}

/// A line that is not too long.
fn cut(mut line: String) -> String {
    if line.len() > 2 * MAX_LINE {
        let end = (0..=2 * MAX_LINE).rev().find(|&at| line.is_char_boundary(at)).unwrap_or(0);
        line.truncate(end);
        line += " ...";
    }
    line
}

/// The layer of a packet's first header: by the headers that elements have marked, otherwise by the
/// bytes.
pub fn first_layer(packet: &Packet) -> Layer {
    match (packet.network_offset(), packet.mac_offset()) {
        (Some(0), _) => Layer::Network,
        (Some(at), _) if at >= Ethernet::LEN as isize => Layer::Ethernet,
        (_, Some(0)) => Layer::Ethernet,
        _ if is_known_frame(packet.bytes()) => Layer::Ethernet,
        _ if begins_with_ip(packet.bytes()) => Layer::Network,
        // The link header was stripped, and the network header is invalid.
        (_, Some(_)) => Layer::Network,
        _ => Layer::Ethernet,
    }
}

/// Whether bytes are an Ethernet frame with an IP header or ARP in it.
fn is_known_frame(bytes: &[u8]) -> bool {
    headers::frame_payload(bytes, usize::MAX).is_some_and(|(kind, at)| {
        let version = bytes.get(at).map(|byte| byte >> 4);
        match kind {
            ether_type::IPV4 => version == Some(4),
            ether_type::IPV6 => version == Some(6),
            ether_type::ARP => version == Some(0),
            _ => false,
        }
    })
}

/// Whether bytes begin with an IP header whose lengths are possible.
fn begins_with_ip(bytes: &[u8]) -> bool {
    let ip4 = Ipv4Header::from_prefix(bytes).is_some_and(|(ip, _)| {
        let total = usize::from(ip.total_len());
        ip.version() == 4 && (Ipv4Header::LEN..=total).contains(&ip.header_len())
    });
    ip4 || Ipv6Header::from_prefix(bytes)
        .is_some_and(|(ip, rest)| ip.version() == 6 && usize::from(ip.payload_len()) <= rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 160;

    fn packet(sketch: &str) -> (Packet, Layer) {
        let built = sketch::build(sketch).expect("is a packet");
        (Packet::from_bytes(&built.bytes), built.layer)
    }

    #[test]
    fn the_layer_is_found_by_headers_or_by_bytes() {
        let texts = [
            "1.0.0.1:5 > 2.0.0.2:6 udp ttl 9 len 60",
            "1::1 > 2::2 udp hop 9 len 60",
            "eth 00:00:00:00:00:01 > 00:00:00:00:00:02 1.0.0.1 > 2.0.0.2 udp ttl 9 len 60",
            "eth 00:00:00:00:00:01 > 00:00:00:00:00:02 vlan 5 1::1 > 2::2 udp hop 9 len 60",
            // The addresses read like an IP header's version.
            "eth 45:00:00:00:00:01 > 60:00:00:00:00:02 1.0.0.1 > 2.0.0.2 udp ttl 9 len 60",
            "eth ff:ff:ff:ff:ff:ff > 00:00:00:00:00:02 arp who-has 1.0.0.1 tell 2.0.0.2 \
             00:00:00:00:00:02",
        ];
        for text in texts {
            let (packet, layer) = packet(text);
            let image = PacketImage::of(&packet, MAX);
            assert_eq!((image.text().as_str(), image.layer), (text, layer));
            assert_eq!((image.length, image.network), (packet.len(), None));
        }
        let (mut frame, _) = packet(texts[2]);
        frame.set_network_header(14, 20);
        assert_eq!(PacketImage::of(&frame, MAX).network, Some(14));
        frame.pull_front(14);
        let stripped = PacketImage::of(&frame, MAX);
        let text = "1.0.0.1 > 2.0.0.2 udp ttl 9 len 60";
        assert_eq!((stripped.text().as_str(), stripped.network), (text, Some(0)));
    }

    #[test]
    fn a_long_packet_is_described_by_its_headers() {
        let (packet, _) = packet("1.0.0.1:5 > 2.0.0.2:6 tcp syn ttl 9 \"GET / HTTP/1.1\" len 1500");
        let image = PacketImage::of(&packet, MAX);
        assert_eq!((image.length, image.bytes.len()), (1500, MAX));
        assert_eq!(image.text(), "1.0.0.1:5 > 2.0.0.2:6 tcp syn ttl 9 len 1500");
        let empty = PacketImage::of(&Packet::from_bytes(&[]), MAX);
        assert_eq!((empty.length, empty.text().as_str()), (0, "eth hex"));
        assert_eq!(empty.summary(), "eth hex");
    }

    #[test]
    fn a_summary_has_no_long_payload() {
        let summary = |text: &str| PacketImage::of(&packet(text).0, usize::MAX).summary();
        let short = "1.0.0.1:5 > 2.0.0.2:6 udp ttl 9 len 31 \"abc\"";
        assert_eq!(summary(short), short);
        let data = "61".repeat(200);
        let long = format!("1.0.0.1:5 > 2.0.0.2:6 udp ttl 9 data {data}");
        assert_eq!(summary(&long), "1.0.0.1:5 > 2.0.0.2:6 udp ttl 9 len 228");
        let wrong = format!("1.0.0.1:5 > 2.0.0.2:6 udp ttl 9 badcheck data {data}");
        assert_eq!(summary(&wrong), "1.0.0.1:5 > 2.0.0.2:6 udp ttl 9 len 228 badcheck");
        let unknown = PacketImage::of(&Packet::from_bytes(&[0xee; 1000]), usize::MAX).summary();
        assert!(unknown.len() < 310, "{unknown}");
    }
}
