//! Segments super-frames into the packets that the wire would have carried (GSO in software).

use super::headers::find_headers;
use super::{LinkType, VnetHeader};
use castanet_wire::checksum::Sum;
use castanet_wire::headers::{Headers, Layer};
use castanet_wire::{Ipv4Header, Ipv6Header, Tcp, Udp, tcp};
use std::fmt;

/// Bytes for the headers of a segment: Ethernet with two tags, IP with options or extensions, TCP
/// with options.
const HEADERS: usize = 256;

/// Reason why a super-frame cannot be segmented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SegmentError {
    /// The headers are not TCP or UDP directly inside IP, or are truncated.
    Headers,
    /// The virtio header names a type or a segment size that does not exist or contradicts the
    /// headers.
    GsoType,
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SegmentError::Headers => "super-frame whose headers are not TCP or UDP over IP",
            SegmentError::GsoType => "super-frame of a kind that does not go with its headers",
        })
    }
}

/// Iterates over the segments of one super-frame: each has its own headers and a slice of the
/// frame's payload.
pub(crate) struct Segments<'f> {
    /// The headers of the super-frame at first, then of the current segment.
    headers: [u8; HEADERS],
    offsets: Headers,
    payload: &'f [u8],
    /// Payload bytes of each segment but the last.
    size: usize,
    /// Payload offset of the next segment.
    at: usize,
    /// Number of segments returned so far.
    count: usize,
    original: OriginalFields,
}

/// Fields of the super-frame's headers that each segment derives its own from.
#[derive(Clone, Copy)]
struct OriginalFields {
    identification: u16,
    seq: u32,
    flags: u8,
}

impl<'f> Segments<'f> {
    /// Prepares to segment `frame` as its virtio header `header` describes.
    pub(crate) fn new(
        frame: &'f [u8],
        header: &VnetHeader,
        link: LinkType,
    ) -> Result<Segments<'f>, SegmentError> {
        let offsets = find_headers(frame, link).ok_or(SegmentError::Headers)?;
        let expected = match (offsets.upper, offsets.is_ip6) {
            (Layer::Tcp, false) => VnetHeader::GSO_TCPV4,
            (Layer::Tcp, true) => VnetHeader::GSO_TCPV6,
            _ => VnetHeader::GSO_UDP_L4,
        };
        let size = usize::from(header.gso_size);
        let tunnelled =
            header.needs_checksum() && usize::from(header.csum_start) != offsets.transport;
        if header.gso_kind() != expected || size == 0 || tunnelled {
            return Err(SegmentError::GsoType);
        }
        let (front, payload) =
            frame.split_at_checked(offsets.payload).ok_or(SegmentError::Headers)?;
        let mut headers = [0; HEADERS];
        headers.get_mut(..front.len()).ok_or(SegmentError::Headers)?.copy_from_slice(front);
        // The length of a jumbogram stands in an option (RFC 2675), which the segments could not
        // keep.
        let ip = &front[offsets.network..];
        let jumbo = offsets.is_ip6
            && Ipv6Header::from_prefix(ip).is_none_or(|(ip, _)| ip.payload_len() == 0);
        if jumbo {
            return Err(SegmentError::Headers);
        }
        let original =
            OriginalFields::parse(&front[offsets.network..], &front[offsets.transport..], &offsets);
        Ok(Segments { headers, offsets, payload, size, at: 0, count: 0, original })
    }

    /// Returns the next segment: its headers, with lengths and checksums complete, and its payload.
    pub(crate) fn next(&mut self) -> Option<(&[u8], &'f [u8])> {
        // A super-frame without payload is one segment.
        if self.at >= self.payload.len() && self.count > 0 {
            return None;
        }
        let end = (self.at + self.size).min(self.payload.len());
        let payload = &self.payload[self.at..end];
        let last = end == self.payload.len();
        self.write_network(payload.len());
        self.write_transport(payload, last);
        self.at = end;
        self.count += 1;
        Some((&self.headers[..self.offsets.payload], payload))
    }

    fn write_network(&mut self, payload: usize) {
        let Headers { is_ip6, network, payload: end, .. } = self.offsets;
        let ip = &mut self.headers[network..end];
        let len = ip.len() + payload;
        if is_ip6 {
            let Some((ip, _)) = Ipv6Header::from_prefix_mut(ip) else { return };
            ip.set_payload_len((len - Ipv6Header::LEN) as u16);
        } else if let Some((ip, rest)) = Ipv4Header::from_prefix_mut(ip) {
            ip.set_total_len(len as u16);
            ip.set_id(self.original.identification.wrapping_add(self.count as u16));
            let options = ip.header_len() - Ipv4Header::LEN;
            ip.update_checksum(&rest[..options]);
        }
    }

    fn write_transport(&mut self, payload: &[u8], last: bool) {
        let Headers { upper, transport, payload: end, .. } = self.offsets;
        let pseudo = self.pseudo(end - transport + payload.len());
        let bytes = &mut self.headers[transport..end];
        if upper == Layer::Tcp {
            let Some((tcp, options)) = Tcp::from_prefix_mut(bytes) else { return };
            tcp.set_seq(self.original.seq.wrapping_add(self.at as u32));
            tcp.set_flags(self.original.tcp_flags(self.count == 0, last));
            // Options are whole words, so the sum continues at an even offset.
            tcp.update_checksum(pseudo.slice(options), payload);
        } else if let Some((udp, _)) = Udp::from_prefix_mut(bytes) {
            udp.set_length((Udp::LEN + payload.len()) as u16);
            udp.update_checksum(pseudo, payload);
        }
    }

    /// The sum of the pseudo header of a segment with `len` bytes of transport header and payload.
    fn pseudo(&self, len: usize) -> Sum {
        let Headers { is_ip6, network, protocol, .. } = self.offsets;
        let ip = &self.headers[network..];
        match is_ip6 {
            false => Ipv4Header::from_prefix(ip).map(|(ip, _)| ip.pseudo(len)),
            true => Ipv6Header::from_prefix(ip).map(|(ip, _)| ip.pseudo(protocol, len)),
        }
        .unwrap_or_default()
    }
}

impl OriginalFields {
    fn parse(ip: &[u8], transport: &[u8], offsets: &Headers) -> OriginalFields {
        let v4 = Ipv4Header::from_prefix(ip).filter(|_| !offsets.is_ip6);
        let tcp = Tcp::from_prefix(transport).filter(|_| offsets.upper == Layer::Tcp);
        OriginalFields {
            identification: v4.map_or(0, |(ip, _)| ip.id()),
            seq: tcp.map_or(0, |(tcp, _)| tcp.seq()),
            flags: tcp.map_or(0, |(tcp, _)| tcp.flags()),
        }
    }

    /// The TCP flags of a segment: FIN and PSH belong to the last byte, CWR to the first segment
    /// (RFC 3168, section 6.1.2).
    fn tcp_flags(self, first: bool, last: bool) -> u8 {
        let ending = if last { 0 } else { tcp::flag::FIN | tcp::flag::PSH };
        let beginning = if first { 0 } else { tcp::flag::CWR };
        self.flags & !(ending | beginning)
    }
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
