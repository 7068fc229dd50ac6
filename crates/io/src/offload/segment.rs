//! Cutting super-frames into the packets that the wire would have carried.

use super::layers::{self, Layers, Transport, Version};
use super::{Link, VnetHeader};
use castanet_wire::checksum::Sum;
use castanet_wire::{Ipv4Header, Ipv6Header, Tcp, Udp, ip_proto, tcp};
use std::fmt;

/// Room for the headers of a segment: Ethernet with two tags, IP with options
/// or extensions, TCP with options.
const HEADERS: usize = 256;

/// Why a super-frame cannot be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unfit {
    /// Its headers are not TCP or UDP right inside IP, or are cut off.
    Headers,
    /// The kernel names a kind, or a segment size, that does not exist or
    /// does not go with the headers.
    Kind,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unfit::Headers => "super-frame whose headers are not TCP or UDP over IP",
            Unfit::Kind => "super-frame of a kind that does not go with its headers",
        })
    }
}

/// The segments of one super-frame, each as its own headers and a part of the
/// frame's payload.
pub(crate) struct Segments<'f> {
    /// The headers of the super-frame, and later of the segment at hand.
    headers: [u8; HEADERS],
    layers: Layers,
    payload: &'f [u8],
    /// Payload bytes of a segment.
    size: usize,
    /// Where the next segment starts.
    at: usize,
    /// How many segments there were.
    count: usize,
    first: First,
}

/// What the super-frame's headers say, and each segment's must say anew.
#[derive(Clone, Copy)]
struct First {
    identification: u16,
    seq: u32,
    flags: u8,
}

impl<'f> Segments<'f> {
    /// Prepares to cut `frame` as `header` says.
    pub(crate) fn new(
        frame: &'f [u8],
        header: &VnetHeader,
        link: Link,
    ) -> Result<Segments<'f>, Unfit> {
        let layers = layers::find(frame, link).ok_or(Unfit::Headers)?;
        let expected = match (layers.transport, layers.version) {
            (Transport::Tcp, Version::V4) => VnetHeader::GSO_TCPV4,
            (Transport::Tcp, Version::V6) => VnetHeader::GSO_TCPV6,
            (Transport::Udp, _) => VnetHeader::GSO_UDP_L4,
        };
        let size = usize::from(header.gso_size);
        let inside = header.needs_checksum() && usize::from(header.csum_start) != layers.header;
        if header.gso_kind() != expected || size == 0 || inside {
            return Err(Unfit::Kind);
        }
        let (front, payload) = frame.split_at_checked(layers.payload).ok_or(Unfit::Headers)?;
        let mut headers = [0; HEADERS];
        headers.get_mut(..front.len()).ok_or(Unfit::Headers)?.copy_from_slice(front);
        // A jumbogram's length stands in an option (RFC 2675), which would
        // have to go.
        let ip = &front[layers.network..];
        let jumbo = layers.version == Version::V6
            && Ipv6Header::from_prefix(ip).is_none_or(|(ip, _)| ip.payload_len() == 0);
        if jumbo {
            return Err(Unfit::Headers);
        }
        let first = First::of(&front[layers.network..], &front[layers.header..], &layers);
        Ok(Segments { headers, layers, payload, size, at: 0, count: 0, first })
    }

    /// The next segment: its headers, complete with lengths and checksums,
    /// and its payload.
    pub(crate) fn next(&mut self) -> Option<(&[u8], &'f [u8])> {
        // A super-frame without payload is one segment, not none.
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
        Some((&self.headers[..self.layers.payload], payload))
    }

    fn write_network(&mut self, payload: usize) {
        let Layers { version, network, payload: end, .. } = self.layers;
        let ip = &mut self.headers[network..end];
        let len = ip.len() + payload;
        match version {
            Version::V4 => {
                let Some((ip, rest)) = Ipv4Header::from_prefix_mut(ip) else { return };
                ip.set_total_len(len as u16);
                ip.set_id(self.first.identification.wrapping_add(self.count as u16));
                let options = ip.header_len() - Ipv4Header::LEN;
                ip.update_checksum(&rest[..options]);
            }
            Version::V6 => {
                let Some((ip, _)) = Ipv6Header::from_prefix_mut(ip) else { return };
                ip.set_payload_len((len - Ipv6Header::LEN) as u16);
            }
        }
    }

    fn write_transport(&mut self, payload: &[u8], last: bool) {
        let Layers { header, payload: end, .. } = self.layers;
        let pseudo = self.pseudo(end - header + payload.len());
        let bytes = &mut self.headers[header..end];
        match self.layers.transport {
            Transport::Tcp => {
                let Some((tcp, options)) = Tcp::from_prefix_mut(bytes) else { return };
                tcp.set_seq(self.first.seq.wrapping_add(self.at as u32));
                tcp.set_flags(self.first.flags_of(self.count == 0, last));
                // Options are whole words, so the sum goes on at an even place.
                tcp.update_checksum(pseudo.slice(options), payload);
            }
            Transport::Udp => {
                let Some((udp, _)) = Udp::from_prefix_mut(bytes) else { return };
                udp.set_length((Udp::LEN + payload.len()) as u16);
                udp.update_checksum(pseudo, payload);
            }
        }
    }

    /// The sum of the pseudo header of a segment with `len` bytes of transport.
    fn pseudo(&self, len: usize) -> Sum {
        let ip = &self.headers[self.layers.network..];
        let protocol = match self.layers.transport {
            Transport::Tcp => ip_proto::TCP,
            Transport::Udp => ip_proto::UDP,
        };
        match self.layers.version {
            Version::V4 => Ipv4Header::from_prefix(ip).map(|(ip, _)| ip.pseudo(len)),
            Version::V6 => Ipv6Header::from_prefix(ip).map(|(ip, _)| ip.pseudo(protocol, len)),
        }
        .unwrap_or_default()
    }
}

impl First {
    fn of(ip: &[u8], transport: &[u8], layers: &Layers) -> First {
        let v4 = Ipv4Header::from_prefix(ip).filter(|_| layers.version == Version::V4);
        let tcp = Tcp::from_prefix(transport).filter(|_| layers.transport == Transport::Tcp);
        First {
            identification: v4.map_or(0, |(ip, _)| ip.id()),
            seq: tcp.map_or(0, |(tcp, _)| tcp.seq()),
            flags: tcp.map_or(0, |(tcp, _)| tcp.flags()),
        }
    }

    /// FIN and PSH belong to the last byte; CWR answers once (RFC 3168, 6.1.2).
    fn flags_of(self, first: bool, last: bool) -> u8 {
        let ending = if last { 0 } else { tcp::flag::FIN | tcp::flag::PSH };
        let beginning = if first { 0 } else { tcp::flag::CWR };
        self.flags & !(ending | beginning)
    }
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
