//! Checksums that a sender left to "hardware", where nobody says so.
//!
//! A frame that an XDP program redirects has no virtio header. But a sender
//! that leaves a checksum to hardware puts the sum of the pseudo header in its
//! place (`CHECKSUM_PARTIAL`), so such frames can be told by their contents.
//! One finished checksum in 65 535 looks the same by chance, and finishing it
//! once more does not change it: what is counted is the same.

use super::Link;
use super::layers::{self, Layers, Transport, Version};
use castanet_wire::checksum::Sum;
use castanet_wire::{Ipv4Header, Ipv6Header, ip_proto};

/// Where TCP and UDP have their checksum.
fn offset_of(transport: Transport) -> usize {
    match transport {
        Transport::Tcp => 16,
        Transport::Udp => 6,
    }
}

/// Finishes the checksum of a TCP or UDP frame if it holds the pseudo header's
/// sum only; says whether it did.
#[inline]
pub(crate) fn finish_if_partial(frame: &mut [u8], link: Link) -> bool {
    let Some(layers) = layers::find(frame, link) else { return false };
    let Some((end, pseudo)) = sum(frame, &layers) else { return false };
    let at = layers.header + offset_of(layers.transport);
    let Some(&[high, low]) = frame.get(at..at + 2) else { return false };
    // The complement of the checksum of the pseudo header is its folded sum.
    if u16::from_be_bytes([high, low]) != !pseudo.checksum() {
        return false;
    }
    let Some(counted) = frame.get(layers.header..end) else { return false };
    // The sum of the pseudo header stands in the checksum's own place.
    let sum = match Sum::new().slice(counted).checksum() {
        0 => u16::MAX, // as in `finish_checksum`
        sum => sum,
    };
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// The end of the IP packet, and the pseudo header's sum. Nothing for
/// fragments, whose checksums are always complete.
#[inline]
fn sum(frame: &[u8], layers: &Layers) -> Option<(usize, Sum)> {
    let ip = frame.get(layers.network..)?;
    let before = layers.header - layers.network;
    match layers.version {
        Version::V4 => {
            let (header, _) = Ipv4Header::from_prefix(ip)?;
            let len = usize::from(header.total_len());
            let counted = len.checked_sub(before).filter(|_| !header.is_fragment())?;
            Some((layers.network + len, header.pseudo(counted)))
        }
        Version::V6 => {
            let (header, _) = Ipv6Header::from_prefix(ip)?;
            let len = Ipv6Header::LEN + usize::from(header.payload_len());
            let protocol = match layers.transport {
                Transport::Tcp => ip_proto::TCP,
                Transport::Udp => ip_proto::UDP,
            };
            Some((layers.network + len, header.pseudo(protocol, len.checked_sub(before)?)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::{VnetHeader, finish_checksum};

    /// An Ethernet frame with a right checksum, and where that stands.
    fn frame(text: &str) -> (Vec<u8>, usize) {
        let text = format!("eth 2:0:0:0:0:1 > 2:0:0:0:0:2 {text}");
        let bytes = castanet_wire::sketch::build(&text).unwrap().bytes;
        let layers = layers::find(&bytes, Link::Ethernet).unwrap();
        let at = layers.header + offset_of(layers.transport);
        (bytes, at)
    }

    const SKETCHES: [&str; 3] = [
        "10.0.0.1:5000 > 10.0.0.2:80 tcp len 101",
        "10.0.0.1:5000 > 10.0.0.2:53 udp len 77",
        "10.0.0.1:5000 > 10.0.0.2:53 udp len 78",
    ];

    #[test]
    fn what_holds_the_pseudo_sum_is_finished() {
        for text in SKETCHES {
            let (right, at) = frame(text);
            let layers = layers::find(&right, Link::Ethernet).unwrap();
            let (_, pseudo) = sum(&right, &layers).unwrap();
            let mut partial = right.clone();
            partial[at..at + 2].copy_from_slice(&(!pseudo.checksum()).to_be_bytes());
            // What the kernel would do with it is the yardstick.
            let mut known = partial.clone();
            let (csum_start, csum_offset) = (layers.header as u16, (at - layers.header) as u16);
            let header = VnetHeader { flags: 1, csum_start, csum_offset, ..Default::default() };
            assert!(finish_checksum(&mut known, &header));
            assert!(finish_if_partial(&mut partial, Link::Ethernet), "{text}");
            assert_eq!(partial, known, "{text}");
            assert_eq!(partial, right, "{text}");
        }
    }

    #[test]
    fn padding_does_not_count() {
        let (right, at) = frame(SKETCHES[0]);
        let layers = layers::find(&right, Link::Ethernet).unwrap();
        let (_, pseudo) = sum(&right, &layers).unwrap();
        let mut padded = right.clone();
        padded[at..at + 2].copy_from_slice(&(!pseudo.checksum()).to_be_bytes());
        padded.extend([0xab; 9]);
        assert!(finish_if_partial(&mut padded, Link::Ethernet));
        assert_eq!(padded[..right.len()], right);
    }

    #[test]
    fn right_and_wrong_checksums_stay_as_they_are() {
        for text in SKETCHES {
            let (right, at) = frame(text);
            for change in [0, 1, 0x80] {
                let mut other = right.clone();
                other[at] ^= change;
                let before = other.clone();
                assert!(!finish_if_partial(&mut other, Link::Ethernet));
                assert_eq!(other, before);
            }
        }
    }

    #[test]
    fn what_is_cut_short_stays_as_it_is() {
        let (right, at) = frame(SKETCHES[0]);
        let layers = layers::find(&right, Link::Ethernet).unwrap();
        let (_, pseudo) = sum(&right, &layers).unwrap();
        let mut partial = right;
        partial[at..at + 2].copy_from_slice(&(!pseudo.checksum()).to_be_bytes());
        for len in 0..partial.len() {
            let mut cut = partial[..len].to_vec();
            assert!(!finish_if_partial(&mut cut, Link::Ethernet), "{len}");
            assert_eq!(cut, partial[..len]);
        }
    }
}
