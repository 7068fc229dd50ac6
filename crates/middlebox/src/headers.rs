//! Header offsets of a packet.

use castanet_packet::Packet;
use castanet_wire::extension;
use castanet_wire::headers::frame_payload;
use castanet_wire::options::{END, NOP, RawOption, RawOptions};
use castanet_wire::{Ethernet, Icmp, Ipv4Header, Ipv6Header, Tcp, Udp, ether_type, ip_proto};

use crate::field::Layer;

/// Maximum number of VLAN tags before an IP header. Linux strips any number of tags of VLAN 0.
const MOST_TAGS: usize = 8;

/// Offsets of the headers of an IP packet, from its first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    /// Whether it is IPv6.
    pub is_ip6: bool,
    /// Offset of the IP header.
    pub network: usize,
    /// End of the IP packet by its length field; link padding follows.
    pub end: usize,
    /// The transport protocol, behind extension headers.
    pub protocol: u8,
    /// Offset of the transport header, behind options and extension headers.
    pub transport: usize,
    /// The layer of the transport header, if that is complete; otherwise [`Layer::Any`].
    pub upper: Layer,
    /// Offset of the transport payload.
    pub payload: usize,
    /// Whether it is a fragment.
    pub is_fragment: bool,
    /// Whether it is a later fragment, without the transport header.
    pub is_later_fragment: bool,
    /// The [bits](extension::bit) of the extension headers.
    pub(crate) extensions: u16,
}

impl Headers {
    /// Parses the headers of a packet: at the network header if it is marked, else behind the
    /// Ethernet header. `None` without a complete IP header.
    #[inline]
    pub fn find(packet: &Packet) -> Option<Headers> {
        let bytes = packet.bytes();
        match packet.network_offset() {
            Some(at) => Headers::of(bytes, usize::try_from(at).ok()?),
            None => {
                let (kind, at) = frame_payload(bytes, MOST_TAGS)?;
                let version = |is_ip6| if is_ip6 { ether_type::IPV6 } else { ether_type::IPV4 };
                Headers::of(bytes, at).filter(|headers| kind == version(headers.is_ip6))
            }
        }
    }

    /// Fast path of [`Headers::find`] for whole UDP and TCP packets of IPv4 without IP options;
    /// `None` for all others.
    #[inline(always)]
    pub(crate) fn plain(packet: &Packet) -> Option<Headers> {
        const PLAIN: u8 = 0x45;
        let bytes = packet.bytes();
        let network = match packet.network_offset() {
            Some(at) => usize::try_from(at).ok()?,
            None => {
                let (ether, _) = Ethernet::from_prefix(bytes)?;
                (ether.ether_type() == ether_type::IPV4).then_some(Ethernet::LEN)?
            }
        };
        let (ip, segment) = Ipv4Header::from_prefix(bytes.get(network..)?)?;
        let (transport, total) = (network + Ipv4Header::LEN, usize::from(ip.total_len()));
        let length = total.checked_sub(Ipv4Header::LEN)?.min(segment.len());
        let (upper, header) = match ip.protocol() {
            ip_proto::UDP => (Layer::Udp, Udp::LEN),
            ip_proto::TCP => (Layer::Tcp, Tcp::from_prefix(segment)?.0.header_len()),
            _ => return None,
        };
        let least = if upper == Layer::Tcp { Tcp::LEN } else { Udp::LEN };
        if ip.version_ihl() != PLAIN || ip.is_fragment() || header < least || header > length {
            return None;
        }
        Some(Headers {
            is_ip6: false,
            network,
            end: transport + length,
            protocol: ip.protocol(),
            transport,
            upper,
            payload: transport + header,
            is_fragment: false,
            is_later_fragment: false,
            extensions: 0,
        })
    }

    /// Parses an IP header at `network`. A TCP header with an impossible length counts as absent.
    pub fn of(bytes: &[u8], network: usize) -> Option<Headers> {
        Headers::quoted(bytes, network).map(|headers| headers.without_impossible(bytes))
    }

    /// Parses a packet that an ICMP error quotes, which may end anywhere behind the ports.
    pub(crate) fn quoted(bytes: &[u8], network: usize) -> Option<Headers> {
        let rest = bytes.get(network..)?;
        match rest.first().map(|first| first >> 4) {
            Some(4) => Headers::of4(bytes, network, rest),
            Some(6) => Headers::of6(bytes, network, rest),
            _ => None,
        }
    }

    fn of4(bytes: &[u8], network: usize, rest: &[u8]) -> Option<Headers> {
        let (ip, _) = Ipv4Header::from_prefix(rest)?;
        let (header, total) = (ip.header_len(), usize::from(ip.total_len()));
        // With a length of 0 a device will segment the packet.
        let end = if total == 0 { rest.len() } else { total.min(rest.len()) };
        if header < Ipv4Header::LEN || header > end {
            return None;
        }
        let headers = Headers {
            is_ip6: false,
            network,
            end: network + end,
            protocol: ip.protocol(),
            transport: network + header,
            upper: Layer::Any,
            payload: network + header,
            is_fragment: ip.is_fragment(),
            is_later_fragment: !ip.is_first_fragment(),
            extensions: 0,
        };
        Some(if ip.is_first_fragment() { headers.with_upper(bytes) } else { headers })
    }

    fn of6(bytes: &[u8], network: usize, rest: &[u8]) -> Option<Headers> {
        let (ip, rest) = Ipv6Header::from_prefix(rest)?;
        let length = match usize::from(ip.payload_len()) {
            0 => rest.len(),
            length => length.min(rest.len()),
        };
        let behind = &rest[..length];
        let upper = extension::upper_layer(ip.next_header(), behind);
        let start = network + Ipv6Header::LEN;
        let headers = Headers {
            is_ip6: true,
            network,
            end: start + length,
            protocol: upper.protocol,
            transport: start + upper.offset,
            upper: Layer::Any,
            payload: start + upper.offset,
            is_fragment: upper.fragment.is_some_and(|fragment| !fragment.is_atomic()),
            is_later_fragment: upper.is_later_fragment(),
            extensions: upper.headers,
        };
        Some(if upper.is_later_fragment() { headers } else { headers.with_upper(bytes) })
    }

    /// Drops a TCP header whose length is too small (RFC 9293, section 3.1), or beyond the packet,
    /// unless the rest may be in another fragment.
    #[inline]
    fn without_impossible(mut self, bytes: &[u8]) -> Headers {
        if self.upper != Layer::Tcp {
            return self;
        }
        let segment = &bytes[self.transport..self.end];
        let header = Tcp::from_prefix(segment).map_or(0, |(tcp, _)| tcp.header_len());
        if header < Tcp::LEN || header > segment.len() && !self.is_fragment {
            (self.upper, self.payload) = (Layer::Any, self.transport);
        }
        self
    }

    /// Whether an extension header or a transport header is truncated and does not continue in
    /// another fragment, or the TCP header has an impossible length.
    #[inline]
    pub(crate) fn is_cut(&self) -> bool {
        let should_be = || match (self.protocol, self.is_ip6) {
            (ip_proto::TCP | ip_proto::UDP, _) => true,
            (ip_proto::ICMP, false) | (ip_proto::ICMPV6, true) => true,
            (protocol, is_ip6) => is_ip6 && extension::is_extension(protocol),
        };
        self.upper == Layer::Any && !self.is_later_fragment && should_be()
    }

    /// The headers of a later fragment together with those that its datagram begins with: in
    /// `bytes` its own end at `divided`, and headers of `protocol` follow.
    pub(crate) fn with_first(self, divided: usize, protocol: u8, bytes: &[u8]) -> Headers {
        let behind = bytes.get(divided..).unwrap_or_default();
        let (mut protocol, mut transport, mut extensions) = (protocol, divided, self.extensions);
        if self.is_ip6 {
            let upper = extension::upper_layer(protocol, behind);
            extensions |= upper.headers;
            (protocol, transport) = (upper.protocol, divided + upper.offset);
        }
        let headers = Headers {
            network: 0,
            end: bytes.len(),
            protocol,
            transport,
            payload: transport,
            is_later_fragment: false,
            extensions,
            ..self
        };
        headers.with_upper(bytes)
    }

    /// With what follows the IP header.
    #[inline]
    fn with_upper(mut self, bytes: &[u8]) -> Headers {
        let rest = &bytes[self.transport..self.end];
        let (upper, length) = match (self.protocol, self.is_ip6) {
            (ip_proto::TCP, _) => (Layer::Tcp, Tcp::LEN),
            (ip_proto::UDP, _) => (Layer::Udp, Udp::LEN),
            (ip_proto::ICMP, false) => (Layer::Icmp, Icmp::LEN),
            (ip_proto::ICMPV6, true) => (Layer::Icmp6, Icmp::LEN),
            _ => return self,
        };
        if rest.len() < length {
            return self;
        }
        self.upper = upper;
        self.payload = self.transport + length;
        if let (Layer::Tcp, Some((tcp, behind))) = (upper, Tcp::from_prefix(rest))
            && let Some((list, _)) = tcp.split_options(behind)
        {
            self.payload += list.len();
        }
        self
    }

    /// Whether the packet has the headers of a layer.
    #[inline]
    pub fn has(&self, layer: Layer) -> bool {
        match layer {
            Layer::Any => true,
            Layer::Ip4 => !self.is_ip6,
            Layer::Ip6 => self.is_ip6,
            upper => self.upper == upper,
        }
    }

    /// Whether it has an extension header of that number; any, without one.
    #[inline]
    pub fn has_extension(&self, number: Option<u8>) -> bool {
        self.extensions & number.map_or(u16::MAX, extension::bit) != 0
    }

    /// Returns the offset of the header of a layer, and of its payload.
    #[inline]
    pub fn layer(&self, layer: Layer) -> (usize, usize) {
        match layer {
            Layer::Any | Layer::Ip6 if self.is_ip6 => {
                (self.network, self.network + Ipv6Header::LEN)
            }
            Layer::Any | Layer::Ip4 | Layer::Ip6 => (self.network, self.transport),
            _ => (self.transport, self.payload),
        }
    }

    /// Returns the range of the TCP options.
    #[inline]
    pub fn options_range(&self) -> std::ops::Range<usize> {
        (self.transport + Tcp::LEN).min(self.payload)..self.payload
    }

    /// Iterates over the TCP options without padding, up to a malformed one.
    #[inline]
    pub fn options<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = RawOption<'a>> + use<'a> {
        let list = match self.upper {
            Layer::Tcp => bytes.get(self.options_range()).unwrap_or_default(),
            _ => &[],
        };
        options(list)
    }

    /// Returns the first TCP option of a kind.
    #[inline]
    pub fn option<'a>(&self, bytes: &'a [u8], kind: u8) -> Option<RawOption<'a>> {
        self.options(bytes).find(|option| option.kind == kind)
    }

    /// Returns the TCP flags; 0 for other protocols.
    #[inline]
    pub fn tcp_flags(&self, bytes: &[u8]) -> u8 {
        if self.upper != Layer::Tcp {
            return 0;
        }
        let header = bytes.get(self.transport..).unwrap_or_default();
        Tcp::from_prefix(header).map_or(0, |(tcp, _)| tcp.flags())
    }

    /// Length of the IP packet.
    pub fn ip_len(&self) -> usize {
        self.end - self.network
    }
}

/// The options of a list without padding, up to where they are malformed.
#[inline]
pub fn options(list: &[u8]) -> impl Iterator<Item = RawOption<'_>> {
    RawOptions::new(list).filter(|option| !matches!(option.kind, END | NOP))
}

/// The kind of a packet in which [`Headers::find`] finds no headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NonIpKind {
    /// It should have an IP header: its EtherType says so, or a mark; or there are more VLAN tags
    /// than there may be.
    Malformed,
    /// ARP.
    Arp,
    /// Anything else.
    Other,
}

impl NonIpKind {
    pub(crate) fn of(packet: &Packet) -> NonIpKind {
        let kind = match packet.network_offset() {
            Some(0..) => return NonIpKind::Malformed,
            Some(_) => return NonIpKind::Other,
            None => frame_payload(packet.bytes(), MOST_TAGS).map(|(kind, _)| kind),
        };
        match kind {
            Some(ether_type::IPV4 | ether_type::IPV6) => NonIpKind::Malformed,
            Some(ether_type::VLAN | ether_type::QINQ) => NonIpKind::Malformed,
            Some(ether_type::ARP) => NonIpKind::Arp,
            _ => NonIpKind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_wire::sketch;
    use proptest::prelude::*;

    fn packet(bytes: &[u8], has_ethernet: bool) -> Packet {
        let mut packet = Packet::from_bytes(bytes);
        if !has_ethernet {
            packet.set_network_header(0, 0);
        }
        packet
    }

    proptest! {
        #[test]
        fn plain_headers_equal_found_headers(
            has_ethernet: bool,
            is_tcp: bool,
            changes in prop::collection::vec((0..60_usize, any::<u8>()), 0..4),
            length in 0..70_usize,
        ) {
            let upper = if is_tcp { "tcp syn tcpopt mss1460" } else { "udp" };
            let link = if has_ethernet { "eth 0:0:0:0:0:1 > 0:0:0:0:0:2 " } else { "" };
            let built = sketch::build(&format!("{link}1.0.0.1:5 > 2.0.0.2:6 {upper} len 48"));
            let mut bytes = built.expect("is a packet").bytes;
            let whole = packet(&bytes, has_ethernet);
            prop_assert!(Headers::plain(&whole).is_some());
            prop_assert_eq!(Headers::plain(&whole), Headers::find(&whole));
            bytes.truncate(length);
            for (at, byte) in changes {
                bytes.get_mut(at).into_iter().for_each(|it| *it = byte);
            }
            let changed = packet(&bytes, has_ethernet);
            if let Some(plain) = Headers::plain(&changed) {
                prop_assert_eq!(Some(plain), Headers::find(&changed));
            }
        }

        #[test]
        fn plain_headers_of_random_bytes_equal_found_headers(
            is_tcp: bool,
            total in 0..80_u16,
            offset: u8,
            mut bytes in prop::collection::vec(any::<u8>(), 20..80),
        ) {
            // Not quite any, for few of those have plain headers.
            bytes[..4].copy_from_slice(&[0x45, 0, 0, total as u8]);
            bytes[6..10].copy_from_slice(&[0, 0, 64, if is_tcp { 6 } else { 17 }]);
            bytes.get_mut(32).into_iter().for_each(|it| *it = offset);
            let packet = packet(&bytes, false);
            let (plain, found) = (Headers::plain(&packet), Headers::find(&packet));
            // All whole packets are plain here, and no others are.
            prop_assert_eq!(plain, found.filter(|it| total > 0 && it.upper != Layer::Any));
            prop_assert_eq!(plain.is_none(), total == 0 || found.is_none_or(|it| it.is_cut()));
        }
    }

    /// A TCP header of a length: whether it is whole, cut, or in a fragment that another follows.
    #[test]
    fn impossible_tcp_header_lengths_are_rejected() {
        for (is_ip6, more) in [(false, false), (false, true), (true, false), (true, true)] {
            for offset in 0..16 {
                let text = match (is_ip6, more) {
                    (false, false) => "1.0.0.1:5 > 2.0.0.2:6 tcp len 60",
                    (false, true) => "1.0.0.1:5 > 2.0.0.2:6 tcp frag 0+ len 60",
                    (true, false) => "[1::1]:5 > [2::2]:6 tcp len 80",
                    (true, true) => "[1::1]:5 > [2::2]:6 tcp frag 0+ len 80",
                };
                let mut bytes = sketch::build(text).expect(text).bytes;
                let found = Headers::find(&packet(&bytes, false)).expect("has headers");
                let room = found.end - found.transport;
                bytes[found.transport + Tcp::OFFSET_BYTE] = offset << 4;
                let length = usize::from(offset) * 4;
                let found = Headers::find(&packet(&bytes, false)).expect("has headers");
                let is_there = length >= Tcp::LEN && (length <= room || more);
                assert_eq!(found.has(Layer::Tcp), is_there, "{text}, {offset}");
                assert_eq!(found.is_cut(), !is_there, "{text}, {offset}");
                // An ICMP error may quote less than all of it.
                let quoted = Headers::quoted(&bytes, 0).expect("has headers");
                assert!(quoted.has(Layer::Tcp));
            }
        }
    }
}
