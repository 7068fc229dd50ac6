//! Examples of dropped packets: one for each element and reason, on one worker.

use crate::time::Time;
use castanet_packet::Packet;
use castanet_wire::sketch::{self, Layer};
use castanet_wire::{Ethernet, Ipv4Header, Ipv6Header, ether_type, headers};

/// The most bytes that an example keeps: all headers of nearly every packet.
const MAX_BYTES: usize = 160;

/// A packet that an element dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DropExample {
    /// The time of the burst in which it was dropped.
    pub time: Time,
    /// Length of the packet in bytes.
    pub length: usize,
    /// Its first bytes, at most 160.
    pub bytes: Box<[u8]>,
    /// The layer of the header with which the bytes begin.
    pub layer: Layer,
    /// Offset of the network header from the first byte, if an element had marked it.
    pub network: Option<isize>,
}

impl DropExample {
    /// Copies the start of a packet.
    fn of(packet: &Packet, time: Time) -> DropExample {
        let bytes = packet.bytes();
        DropExample {
            time,
            length: bytes.len(),
            bytes: bytes[..bytes.len().min(MAX_BYTES)].into(),
            layer: first_layer(packet),
            network: packet.network_offset(),
        }
    }

    /// The packet as one line, a sketch as in the examples of the manual; one that is longer than
    /// the bytes kept of it is described by its headers.
    pub fn text(&self) -> String {
        sketch::print_start(&self.bytes, self.length, self.layer)
    }
}

/// The layer of a packet's first header: by the headers that elements have marked, otherwise by the
/// bytes.
fn first_layer(packet: &Packet) -> Layer {
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

/// The examples of one element.
#[derive(Clone, Default)]
struct ElementExamples {
    /// A bit for each fate of which an example was recorded since examples were last requested.
    recorded: [u64; 4],
    /// By fate: the latest example.
    examples: Vec<(u8, DropExample)>,
}

/// Examples of dropped packets on one worker: at most one for each element and fate, which is a
/// reason to drop or an open output. The first packet that is dropped after a request
/// ([`DropExamples::request`]) becomes the example; all others cost a test of one bit.
#[derive(Clone, Default)]
pub struct DropExamples {
    /// By element.
    elements: Vec<ElementExamples>,
}

impl DropExamples {
    /// No examples yet, of that many elements, and a request for all.
    pub fn new(elements: usize) -> DropExamples {
        DropExamples { elements: vec![ElementExamples::default(); elements] }
    }

    /// Whether the next packet that the element drops with this fate is to be recorded.
    #[inline]
    pub fn wants(&self, element: usize, fate: u8) -> bool {
        let bit = 1 << (fate % 64);
        let of = self.elements.get(element);
        of.is_some_and(|of| of.recorded[usize::from(fate / 64)] & bit == 0)
    }

    /// Records a dropped packet in place of an earlier example.
    #[cold]
    #[inline(never)]
    pub fn record(&mut self, element: usize, fate: u8, now: Time, packet: &Packet) {
        let Some(of) = self.elements.get_mut(element) else { return };
        of.recorded[usize::from(fate / 64)] |= 1 << (fate % 64);
        let example = DropExample::of(packet, now);
        match of.examples.iter_mut().find(|(other, _)| *other == fate) {
            Some((_, before)) => *before = example,
            None => of.examples.push((fate, example)),
        }
    }

    /// Requests new examples. Each one stays until the element drops another packet with its fate.
    pub fn request(&mut self) {
        self.elements.iter_mut().for_each(|of| of.recorded = [0; 4]);
    }

    /// The latest example of an element's packets with this fate.
    pub fn get(&self, element: usize, fate: u8) -> Option<&DropExample> {
        let examples = &self.elements.get(element)?.examples;
        examples.iter().find(|(other, _)| *other == fate).map(|(_, example)| example)
    }

    /// Moves the examples of element `before` of `old` to element `element`.
    pub fn inherit(&mut self, element: usize, old: &mut DropExamples, before: usize) {
        if let (Some(to), Some(from)) =
            (self.elements.get_mut(element), old.elements.get_mut(before))
        {
            *to = std::mem::take(from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fate::{DROP, NOT_TAKEN};

    fn packet(sketch: &str) -> (Packet, Layer) {
        let built = sketch::build(sketch).expect("is a packet");
        (Packet::from_bytes(&built.bytes), built.layer)
    }

    fn drop_one(examples: &mut DropExamples, element: usize, fate: u8, n: u8) {
        if examples.wants(element, fate) {
            examples.record(element, fate, Time(n.into()), &Packet::from_bytes(&[n]));
        }
    }

    fn first_byte(examples: &DropExamples, element: usize, fate: u8) -> Option<u8> {
        examples.get(element, fate).map(|it| it.bytes[0])
    }

    #[test]
    fn the_first_packet_after_a_request_is_kept_by_element_and_fate() {
        let mut examples = DropExamples::new(2);
        // All words of the mask, and both ends of each.
        let fates = [0, 1, 63, 64, 127, 128, 191, 192, NOT_TAKEN, DROP];
        for round in [10, 20] {
            for n in 0..3 {
                for (fate, place) in fates.iter().zip(0..) {
                    drop_one(&mut examples, 1, *fate, round + 100 * n.min(1) + place);
                }
            }
            for (fate, place) in fates.iter().zip(0..) {
                assert_eq!(first_byte(&examples, 1, *fate), Some(round + place));
                assert_eq!(first_byte(&examples, 0, *fate), None);
                assert!(!examples.wants(1, *fate) && examples.wants(0, *fate));
            }
            assert!((0..=255).filter(|&fate| !examples.wants(1, fate)).count() == fates.len());
            examples.request();
            assert_eq!(first_byte(&examples, 1, DROP), Some(round + 9), "the old one stays");
            assert!(fates.iter().all(|&fate| examples.wants(1, fate)));
        }
    }

    #[test]
    fn examples_and_requests_move_to_another_element() {
        let (mut old, mut new) = (DropExamples::new(3), DropExamples::new(2));
        drop_one(&mut old, 2, DROP, 7);
        new.inherit(0, &mut old, 2);
        assert_eq!(first_byte(&new, 0, DROP), Some(7));
        assert!(!new.wants(0, DROP) && new.wants(1, DROP));
        assert_eq!(first_byte(&old, 2, DROP), None);
        // Elements that do not exist have no examples.
        new.inherit(5, &mut old, 0);
        drop_one(&mut new, 5, DROP, 1);
        assert!(!new.wants(5, DROP) && new.get(5, DROP).is_none());
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
            let example = DropExample::of(&packet, Time(5));
            assert_eq!((example.text().as_str(), example.layer), (text, layer));
            assert_eq!(
                (example.time, example.length, example.network),
                (Time(5), packet.len(), None)
            );
        }
        let (mut frame, _) = packet(texts[2]);
        frame.set_network_header(14, 20);
        assert_eq!(DropExample::of(&frame, Time(0)).network, Some(14));
        frame.pull_front(14);
        let stripped = DropExample::of(&frame, Time(0));
        let text = "1.0.0.1 > 2.0.0.2 udp ttl 9 len 60";
        assert_eq!((stripped.text().as_str(), stripped.network), (text, Some(0)));
    }

    #[test]
    fn a_long_packet_is_described_by_its_headers() {
        let (packet, _) = packet("1.0.0.1:5 > 2.0.0.2:6 tcp syn ttl 9 \"GET / HTTP/1.1\" len 1500");
        let example = DropExample::of(&packet, Time(0));
        assert_eq!((example.length, example.bytes.len()), (1500, MAX_BYTES));
        assert_eq!(example.text(), "1.0.0.1:5 > 2.0.0.2:6 tcp syn ttl 9 len 1500");
        let empty = DropExample::of(&Packet::from_bytes(&[]), Time(0));
        assert_eq!((empty.length, empty.text().as_str()), (0, "eth hex"));
    }
}
