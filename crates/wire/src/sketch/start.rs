//! Prints packets of which only the start is known.

use super::{Layer, print};
use crate::headers::{self, Headers};

/// The longest packet that is described by its headers.
const MAX_LENGTH: usize = 1 << 17;
/// The most VLAN tags before a network header.
const MAX_TAGS: usize = 4;

/// Prints a packet of `length` bytes that begins with `start`: as [`print`] if that is all of it.
/// Otherwise the sketch has the headers of the packet and its length, but neither its payload nor
/// the checksum of the transport layer, which nobody can check. Packets without known headers are
/// printed as `hex`, with the number of bytes that are missing.
pub fn print_start(start: &[u8], length: usize, layer: Layer) -> String {
    if length <= start.len() {
        return print(start, layer);
    }
    let by_headers = padded(start, length, layer).map(|packet| print(&packet, layer));
    match by_headers.filter(|text| !text.split(' ').any(|word| word == "hex")) {
        Some(text) => without_check(&text),
        None => format!("{} and {} more bytes", print(start, layer), length - start.len()),
    }
}

/// The headers of a packet, with zeros behind them; `None` if it is not an IP packet.
fn padded(start: &[u8], length: usize, layer: Layer) -> Option<Vec<u8>> {
    let network = match layer {
        Layer::Network => 0,
        Layer::Ethernet => headers::frame_payload(start, MAX_TAGS)?.1,
    };
    let headers = Headers::of(start, network).filter(|_| length <= MAX_LENGTH)?;
    let mut packet = start[..headers.payload].to_vec();
    packet.resize(length, 0);
    Some(packet)
}

/// The sketch without words about the checksum of the transport layer.
fn without_check(text: &str) -> String {
    let (mut words, mut kept) = (text.split(' '), Vec::new());
    while let Some(word) = words.next() {
        match word {
            "badcheck" => {}
            "check" => _ = words.next(),
            _ => kept.push(word),
        }
    }
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::build;
    use proptest::prelude::*;

    fn shown(text: &str, known: usize) -> String {
        let sketch = build(text).expect(text);
        print_start(&sketch.bytes[..known], sketch.bytes.len(), sketch.layer)
    }

    #[test]
    fn a_packet_is_described_by_its_headers() {
        let cases = [
            (
                "1.0.0.1:5 > 2.0.0.2:6 udp ttl 9 \"long text\" len 900",
                "1.0.0.1:5 > 2.0.0.2:6 udp ttl 9 len 900",
            ),
            (
                "1.0.0.1:5 > 2.0.0.2:6 tcp syn ttl 9 tcpopt mss1460 len 900 badcheck",
                "1.0.0.1:5 > 2.0.0.2:6 tcp syn tcpopt mss1460 ttl 9 len 900",
            ),
            (
                "1.0.0.1:5 > 2.0.0.2:6 udp ttl 9 len 900 badsum nocheck",
                "1.0.0.1:5 > 2.0.0.2:6 udp ttl 9 len 900 badsum nocheck",
            ),
            ("1::1 > 2::2 icmp6 hop 9 len 900", "1::1 > 2::2 icmp6 type 128 hop 9 len 900"),
            (
                "eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 5 1.0.0.1 > 2.0.0.2 proto 47 ttl 9 len 900 data ff",
                "eth 00:00:00:00:00:01 > 00:00:00:00:00:02 vlan 5 1.0.0.1 > 2.0.0.2 proto 47 ttl 9 len 900",
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(shown(text, 120), wanted);
        }
    }

    #[test]
    fn a_packet_that_is_known_whole_is_printed_whole() {
        let text = "1.0.0.1:5 > 2.0.0.2:6 udp ttl 9 len 60 \"text\" badcheck";
        let bytes = build(text).expect(text).bytes;
        let wanted = print(&bytes, Layer::Network);
        assert!(wanted.contains("badcheck") && wanted.contains("text"));
        assert_eq!(print_start(&bytes, bytes.len(), Layer::Network), wanted);
    }

    #[test]
    fn bytes_without_headers_are_counted() {
        let text = print_start(&[1, 2], 1500, Layer::Network);
        assert_eq!(text, "hex 01 02 and 1498 more bytes");
        let frame = "eth 0:0:0:0:0:1 > 0:0:0:0:0:2 type 0x88cc hex 01 02 03";
        let wanted =
            "eth 00:00:00:00:00:01 > 00:00:00:00:00:02 type 0x88cc hex 01 and 2 more bytes";
        assert_eq!(shown(frame, 15), wanted);
        let huge = shown("1.0.0.1 > 2.0.0.2 udp len 900", 60);
        assert!(huge.ends_with("len 900"), "{huge}");
        let bytes = build("1.0.0.1 > 2.0.0.2 udp len 900").expect("is one").bytes;
        let text = print_start(&bytes[..20], usize::MAX, Layer::Network);
        assert!(text.ends_with(" more bytes") && text.len() < 200, "{text}");
    }

    proptest! {
        #[test]
        fn any_bytes_become_one_line(
            start in prop::collection::vec(any::<u8>(), 0..160),
            version in prop_oneof![Just(None), Just(Some(0x45)), Just(Some(0x60))],
            more in 0..3000usize,
            is_frame in any::<bool>(),
        ) {
            let mut start = start;
            if let (Some(version), Some(first)) = (version, start.first_mut()) {
                *first = version;
            }
            let layer = if is_frame { Layer::Ethernet } else { Layer::Network };
            let text = print_start(&start, start.len() + more, layer);
            prop_assert!(!text.is_empty() && !text.contains('\n'));
        }

        #[test]
        fn a_cut_packet_reads_like_the_whole_one_without_payload(
            port in 1..60000u16, ttl in 1..255u8, len in 200..1500usize, known in 60..200usize,
        ) {
            let text = format!("1.0.0.1:{port} > 2.0.0.2:80 tcp ttl {ttl} len {len}");
            let with_payload = format!("{text} \"payload\"");
            prop_assert_eq!(shown(&with_payload, known), text);
        }
    }
}
