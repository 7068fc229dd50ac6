//! Finishes partial checksums of frames that carry no virtio header.
//!
//! A frame that an XDP program redirects has no virtio header. But a sender that leaves a checksum
//! to hardware puts the sum of the pseudo header into the checksum field (`CHECKSUM_PARTIAL`), so
//! such frames can be recognised by their contents. One finished checksum in 65 535 has the same
//! value by chance; finishing it once more does not change it, because the summed bytes are the
//! same.

use super::LinkType;
use super::headers::find_headers;
use castanet_wire::checksum::Sum;
use castanet_wire::headers::{Headers, Layer};
use castanet_wire::{Ipv4Header, Ipv6Header, Tcp, Udp};

/// Offset of the checksum field of a TCP or UDP packet.
fn checksum_offset(headers: &Headers) -> usize {
    headers.transport + if headers.upper == Layer::Tcp { Tcp::CHECKSUM } else { Udp::CHECKSUM }
}

/// Finishes the checksum of a TCP or UDP frame if its field holds only the sum of the pseudo
/// header; returns whether it did.
#[inline]
pub(crate) fn finish_if_partial(frame: &mut [u8], link: LinkType) -> bool {
    let Some(headers) = find_headers(frame, link) else { return false };
    let Some(pseudo) = pseudo_sum(frame, &headers) else { return false };
    let at = checksum_offset(&headers);
    let Some(&[high, low]) = frame.get(at..at + 2) else { return false };
    // The complement of the checksum of the pseudo header is its folded sum.
    if u16::from_be_bytes([high, low]) != !pseudo.checksum() {
        return false;
    }
    let Some(counted) = frame.get(headers.transport..headers.end) else { return false };
    // The checksum field itself contributes the sum of the pseudo header.
    let sum = match Sum::new().slice(counted).checksum() {
        0 => u16::MAX, // as in `finish_checksum`
        sum => sum,
    };
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// The sum of the pseudo header. `None` if the length field of the IP header is 0, or the packet is
/// longer than the frame.
#[inline]
fn pseudo_sum(frame: &[u8], headers: &Headers) -> Option<Sum> {
    let packet = frame.get(headers.network..headers.end)?;
    let len = headers.end - headers.transport;
    if headers.is_ip6 {
        let (ip, payload) = Ipv6Header::from_prefix(packet)?;
        let is_whole = usize::from(ip.payload_len()) == payload.len();
        is_whole.then(|| ip.pseudo(headers.protocol, len))
    } else {
        let (ip, _) = Ipv4Header::from_prefix(packet)?;
        (usize::from(ip.total_len()) == packet.len()).then(|| ip.pseudo(len))
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
        let at = checksum_offset(&find_headers(&bytes, LinkType::Ethernet).unwrap());
        (bytes, at)
    }

    const SKETCHES: [&str; 3] = [
        "10.0.0.1:5000 > 10.0.0.2:80 tcp len 101",
        "10.0.0.1:5000 > 10.0.0.2:53 udp len 77",
        "10.0.0.1:5000 > 10.0.0.2:53 udp len 78",
    ];

    #[test]
    fn a_checksum_that_holds_the_pseudo_sum_is_finished() {
        for text in SKETCHES {
            let (right, at) = frame(text);
            let headers = find_headers(&right, LinkType::Ethernet).unwrap();
            let pseudo = pseudo_sum(&right, &headers).unwrap();
            let mut partial = right.clone();
            partial[at..at + 2].copy_from_slice(&(!pseudo.checksum()).to_be_bytes());
            // The expected result: the same frame, finished by a virtio header.
            let mut expected = partial.clone();
            let (csum_start, csum_offset) =
                (headers.transport as u16, (at - headers.transport) as u16);
            let header = VnetHeader { flags: 1, csum_start, csum_offset, ..Default::default() };
            assert!(finish_checksum(&mut expected, &header));
            assert!(finish_if_partial(&mut partial, LinkType::Ethernet), "{text}");
            assert_eq!(partial, expected, "{text}");
            assert_eq!(partial, right, "{text}");
        }
    }

    #[test]
    fn padding_is_not_summed() {
        let (right, at) = frame(SKETCHES[0]);
        let headers = find_headers(&right, LinkType::Ethernet).unwrap();
        let pseudo = pseudo_sum(&right, &headers).unwrap();
        let mut padded = right.clone();
        padded[at..at + 2].copy_from_slice(&(!pseudo.checksum()).to_be_bytes());
        padded.extend([0xab; 9]);
        assert!(finish_if_partial(&mut padded, LinkType::Ethernet));
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
                assert!(!finish_if_partial(&mut other, LinkType::Ethernet));
                assert_eq!(other, before);
            }
        }
    }

    #[test]
    fn a_truncated_frame_stays_as_it_is() {
        let (right, at) = frame(SKETCHES[0]);
        let headers = find_headers(&right, LinkType::Ethernet).unwrap();
        let pseudo = pseudo_sum(&right, &headers).unwrap();
        let mut partial = right;
        partial[at..at + 2].copy_from_slice(&(!pseudo.checksum()).to_be_bytes());
        for len in 0..partial.len() {
            let mut cut = partial[..len].to_vec();
            assert!(!finish_if_partial(&mut cut, LinkType::Ethernet), "{len}");
            assert_eq!(cut, partial[..len]);
        }
    }
}
