//! Locates headers: the payload of an Ethernet frame behind VLAN tags, and the IP, extension and
//! transport headers of a packet.

use crate::options::{self, RawOption};
use crate::{Ethernet, Icmp, Ipv4Header, Ipv6Header, Tcp, Udp, Vlan};
use crate::{ether_type, extension, ip_proto};

/// The EtherType and the offset of a frame's payload, behind at most `max_tags` VLAN tags; the
/// EtherType of a tag if more of them follow. `None` if the Ethernet header or a tag is truncated.
#[inline]
pub fn frame_payload(frame: &[u8], max_tags: usize) -> Option<(u16, usize)> {
    let (ether, mut rest) = Ethernet::from_prefix(frame)?;
    let (mut kind, mut tags) = (ether.ether_type(), 0);
    while matches!(kind, ether_type::VLAN | ether_type::QINQ) && tags < max_tags {
        let (tag, behind) = Vlan::from_prefix(rest)?;
        (kind, rest, tags) = (tag.ether_type(), behind, tags + 1);
    }
    Some((kind, Ethernet::LEN + tags * Vlan::LEN))
}

/// A layer of an IP packet, which has one header of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Layer {
    /// Any IP packet.
    Any,
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
    /// ICMP over IPv4.
    Icmp,
    /// ICMPv6.
    Icmp6,
    /// UDP, over either.
    Udp,
    /// TCP, over either.
    Tcp,
}

impl Layer {
    /// The name in lists and in documentation.
    pub const fn word(self) -> &'static str {
        match self {
            Layer::Any => "any",
            Layer::Ip4 => "ip4",
            Layer::Ip6 => "ip6",
            Layer::Icmp => "icmp",
            Layer::Icmp6 => "icmp6",
            Layer::Udp => "udp",
            Layer::Tcp => "tcp",
        }
    }
}

/// Offsets of the headers of an IP packet, from its first byte. All lie inside of the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    /// Whether it is IPv6.
    pub is_ip6: bool,
    /// Offset of the IP header.
    pub network: usize,
    /// End of the IP packet by its length field; link padding follows. The end of the bytes if
    /// that is nearer, or if the length field is 0.
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
    pub extensions: u16,
}

impl Headers {
    /// Locates the headers of an IP packet whose IP header begins at `network`. A TCP header with
    /// an impossible length counts as absent. `None` if the IP header is incomplete or malformed.
    #[inline]
    pub fn of(bytes: &[u8], network: usize) -> Option<Headers> {
        Headers::locate(bytes, network, false)
    }

    /// Locates the headers of a packet that an ICMP error quotes, which may end anywhere behind
    /// the ports.
    pub fn quoted(bytes: &[u8], network: usize) -> Option<Headers> {
        Headers::locate(bytes, network, true)
    }

    #[inline(always)]
    fn locate(bytes: &[u8], network: usize, is_quoted: bool) -> Option<Headers> {
        let rest = bytes.get(network..)?;
        match rest.first()? >> 4 {
            4 => Headers::of_ip4(network, rest, is_quoted),
            6 => Headers::of_ip6(network, rest, is_quoted),
            _ => None,
        }
    }

    #[inline(always)]
    fn of_ip4(network: usize, rest: &[u8], is_quoted: bool) -> Option<Headers> {
        let (ip, _) = Ipv4Header::from_prefix(rest)?;
        let (header, total) = (ip.header_len(), usize::from(ip.total_len()));
        // With a length of 0 a device will segment the packet.
        let end = if total == 0 { rest.len() } else { total.min(rest.len()) };
        let segment = rest.get(header..end).filter(|_| header >= Ipv4Header::LEN)?;
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
        Some(headers.with_upper(segment, is_quoted))
    }

    #[inline(always)]
    fn of_ip6(network: usize, rest: &[u8], is_quoted: bool) -> Option<Headers> {
        let (ip, behind) = Ipv6Header::from_prefix(rest)?;
        let behind = &behind[..ip.payload_len_in(behind.len())];
        let (protocol, transport) = (ip.next_header(), network + Ipv6Header::LEN);
        let headers = Headers {
            is_ip6: true,
            network,
            end: transport + behind.len(),
            protocol,
            transport,
            upper: Layer::Any,
            payload: transport,
            is_fragment: false,
            is_later_fragment: false,
            extensions: 0,
        };
        Some(match extension::bit(protocol) {
            0 => headers.with_upper(behind, is_quoted),
            _ => headers.with_extensions(behind, is_quoted),
        })
    }

    /// Skips the extension headers in `behind`, which begins at the transport header so far, and
    /// adds the transport header.
    fn with_extensions(mut self, behind: &[u8], is_quoted: bool) -> Headers {
        let upper = extension::upper_layer(self.protocol, behind);
        self.protocol = upper.protocol;
        self.transport += upper.offset;
        self.payload = self.transport;
        self.is_fragment |= upper.fragment.is_some_and(|fragment| !fragment.is_atomic());
        self.is_later_fragment = upper.is_later_fragment();
        self.extensions |= upper.headers;
        self.with_upper(&behind[upper.offset..], is_quoted)
    }

    /// Fast path of [`Headers::of`] for whole UDP and TCP packets of IPv4 without IP options;
    /// `None` for all others.
    #[inline(always)]
    pub fn plain(bytes: &[u8], network: usize) -> Option<Headers> {
        let (ip, segment) = Ipv4Header::from_prefix(bytes.get(network..)?)?;
        let (transport, total) = (network + Ipv4Header::LEN, usize::from(ip.total_len()));
        let length = total.checked_sub(Ipv4Header::LEN)?.min(segment.len());
        let (upper, header) = match ip.protocol() {
            ip_proto::UDP => (Layer::Udp, Udp::LEN),
            ip_proto::TCP => (Layer::Tcp, Tcp::from_prefix(segment)?.0.header_len()),
            _ => return None,
        };
        let least = if upper == Layer::Tcp { Tcp::LEN } else { Udp::LEN };
        if !ip.is_plain() || ip.is_fragment() || header < least || header > length {
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

    /// Fast path of [`Headers::of`] for whole UDP and TCP packets of IPv6 without extension headers;
    /// `None` for all others.
    #[inline(always)]
    pub fn plain_ip6(bytes: &[u8], network: usize) -> Option<Headers> {
        let (ip, behind) = Ipv6Header::from_prefix(bytes.get(network..)?)?;
        let length = ip.payload_len_in(behind.len());
        let (upper, least, header) = match ip.next_header() {
            ip_proto::UDP => (Layer::Udp, Udp::LEN, Udp::LEN),
            ip_proto::TCP => (Layer::Tcp, Tcp::LEN, Tcp::from_prefix(behind)?.0.header_len()),
            _ => return None,
        };
        if ip.version() != 6 || header < least || header > length {
            return None;
        }
        let transport = network + Ipv6Header::LEN;
        Some(Headers {
            is_ip6: true,
            network,
            end: transport + length,
            protocol: ip.next_header(),
            transport,
            upper,
            payload: transport + header,
            is_fragment: false,
            is_later_fragment: false,
            extensions: 0,
        })
    }

    /// The headers of a later fragment together with those that its datagram begins with: in
    /// `bytes` its own, up to that of IP, end at `divided`, and headers of `protocol` follow.
    pub fn with_first(self, divided: usize, protocol: u8, bytes: &[u8]) -> Headers {
        let (behind, transport) = (bytes.get(divided..).unwrap_or_default(), divided);
        let headers = Headers {
            end: bytes.len(),
            protocol,
            transport,
            payload: transport,
            is_later_fragment: false,
            ..self
        };
        match self.is_ip6 {
            true => headers.with_extensions(behind, true),
            false => headers.with_upper(behind, true),
        }
    }

    /// Adds the transport header at the start of `segment`, if it is in this fragment and complete.
    /// A TCP header whose length is too small (RFC 9293, section 3.1), or beyond the packet, is
    /// absent, unless the rest may be in another fragment or the packet is quoted.
    #[inline(always)]
    fn with_upper(mut self, segment: &[u8], is_quoted: bool) -> Headers {
        let (upper, least) = match (self.protocol, self.is_ip6) {
            (ip_proto::TCP, _) => (Layer::Tcp, Tcp::LEN),
            (ip_proto::UDP, _) => (Layer::Udp, Udp::LEN),
            (ip_proto::ICMP, false) => (Layer::Icmp, Icmp::LEN),
            (ip_proto::ICMPV6, true) => (Layer::Icmp6, Icmp::LEN),
            _ => return self,
        };
        if segment.len() < least || self.is_later_fragment {
            return self;
        }
        let length = match Tcp::from_prefix(segment) {
            Some((tcp, _)) if upper == Layer::Tcp => tcp.header_len(),
            _ => least,
        };
        let is_whole = (least..=segment.len()).contains(&length);
        if is_whole || is_quoted || length >= least && self.is_fragment {
            self.upper = upper;
            self.payload = self.transport + if is_whole { length } else { least };
        }
        self
    }

    /// Whether an extension header or a transport header is truncated and does not continue in
    /// another fragment, or the TCP header has an impossible length.
    #[inline]
    pub fn is_cut(&self) -> bool {
        let should_be = || match (self.protocol, self.is_ip6) {
            (ip_proto::TCP | ip_proto::UDP, _) => true,
            (ip_proto::ICMP, false) | (ip_proto::ICMPV6, true) => true,
            (protocol, is_ip6) => is_ip6 && extension::is_extension(protocol),
        };
        self.upper == Layer::Any && !self.is_later_fragment && should_be()
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
        options::unpadded(list)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch;
    use ip_proto::*;
    use proptest::prelude::*;

    #[test]
    fn tags_are_skipped_up_to_a_limit() {
        let tags = [0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0];
        let frame = [&[0; 12][..], &tags, &[0x45]].concat();
        for (limit, ether_type, offset) in [
            (usize::MAX, ether_type::IPV4, 22),
            (2, ether_type::IPV4, 22),
            (1, ether_type::VLAN, 18),
            (0, ether_type::QINQ, 14),
        ] {
            for len in 0..frame.len() {
                let expected = (len >= offset).then_some((ether_type, offset));
                assert_eq!(frame_payload(&frame[..len], limit), expected, "{limit}, {len} bytes");
            }
        }
    }

    /// The headers of a packet that begins with its IP header, byte by byte.
    fn reference(bytes: &[u8]) -> Option<Headers> {
        let word = |at: usize| usize::from(bytes[at]) << 8 | usize::from(bytes[at + 1]);
        let (is_ip6, least) = (bytes.first()? >> 4 == 6, if bytes[0] >> 4 == 6 { 40 } else { 20 });
        if !is_ip6 && bytes[0] >> 4 != 4 || bytes.len() < least {
            return None;
        }
        let length = if is_ip6 { (word(4) + 40) * usize::from(word(4) > 0) } else { word(2) };
        let end = if length == 0 { bytes.len() } else { length.min(bytes.len()) };
        let (mut protocol, mut at) = if is_ip6 { (bytes[6], 40) } else { (bytes[9], 0) };
        let (mut offset, mut more, mut fragments, mut extensions) = (0, false, 0, 0);
        if !is_ip6 {
            at = usize::from(bytes[0] & 15) * 4;
            if !(20..=end).contains(&at) {
                return None;
            }
            (offset, more) = (word(6) & 0x1fff, word(6) & 0x2000 != 0);
        }
        let mut second = None;
        loop {
            if !is_ip6 {
                break;
            }
            extensions |= extension::bit(protocol);
            if ![0, 43, 44, 51, 60].contains(&protocol) || at + 2 > end {
                break;
            }
            let units = usize::from(bytes[at + 1]);
            let length = match protocol {
                44 => 8,
                51 => (units + 2) * 4,
                _ => (units + 1) * 8,
            };
            if at + length > end {
                break;
            }
            let fragment = if protocol == 44 { word(at + 2) } else { 0 };
            if protocol == 44 && fragments == 0 {
                (offset, more) = (fragment >> 3, fragment & 1 != 0);
            } else if protocol == 44 {
                second.get_or_insert((protocol, at));
            }
            fragments += usize::from(protocol == 44);
            (protocol, at) = (bytes[at], at + length);
            if fragment >> 3 != 0 {
                break;
            }
        }
        (protocol, at) = second.unwrap_or((protocol, at));
        let (mut upper, mut payload) = (Layer::Any, at);
        let (is_fragment, is_later_fragment) = (offset != 0 || more, offset != 0);
        let layer = match protocol {
            6 => Some((Layer::Tcp, 20)),
            17 => Some((Layer::Udp, 8)),
            1 if !is_ip6 => Some((Layer::Icmp, 8)),
            58 if is_ip6 => Some((Layer::Icmp6, 8)),
            _ => None,
        };
        if let Some((layer, least)) = layer.filter(|(_, least)| offset == 0 && at + least <= end) {
            let header = if protocol == 6 { usize::from(bytes[at + 12] >> 4) * 4 } else { least };
            if header >= least && (at + header <= end || is_fragment) {
                upper = layer;
                payload = at + if at + header <= end { header } else { least };
            }
        }
        let (network, transport) = (0, at);
        Some(Headers {
            is_ip6,
            network,
            end,
            protocol,
            transport,
            upper,
            payload,
            is_fragment,
            is_later_fragment,
            extensions,
        })
    }

    /// A packet with any extension headers or options, whose length fields are often right.
    fn packet() -> impl Strategy<Value = Vec<u8>> {
        let protocol = || prop::sample::select(vec![TCP, UDP, ICMP, ICMPV6, ESP, NO_NEXT]);
        let extension = prop::sample::select(vec![0, 43, 44, 44, 51, 60]);
        let chain = prop::collection::vec((extension, 0..3_u8, 0..4_u16), 0..5);
        let length = prop::sample::select(vec![0, 0, 0, 0, 1, 8, -8, -30, i32::MIN]);
        (any::<bool>(), protocol(), chain, 0..16_u8, 0..40_usize, length).prop_map(
            |(is_ip6, protocol, chain, tcp_offset, payload, length)| {
                let mut upper = vec![0x11; 16 + payload];
                upper[12] = tcp_offset << 4;
                let mut bytes = vec![if is_ip6 { 0x60 } else { 0x45 + chain.len() as u8 }];
                bytes.resize(if is_ip6 { 40 } else { 20 + chain.len() * 4 }, 0);
                bytes[9] = protocol;
                let mut next = 6;
                for (kind, units, fragment) in chain.iter().filter(|_| is_ip6) {
                    let size = match kind {
                        44 => 8,
                        51 => (usize::from(*units) + 2) * 4,
                        _ => (usize::from(*units) + 1) * 8,
                    };
                    bytes[next] = *kind;
                    next = bytes.len();
                    bytes.resize(next + size, 0);
                    // Most fragments are first ones.
                    bytes[next + 1..next + 4].copy_from_slice(&[
                        *units,
                        0,
                        [0, 0, 1, 8][usize::from(*fragment)],
                    ]);
                }
                if is_ip6 {
                    bytes[next] = protocol;
                }
                bytes.extend(upper);
                let right = (bytes.len() - if is_ip6 { 40 } else { 0 }) as i32;
                let claimed = right.checked_add(length).map_or(0, |claimed| claimed.max(0)) as u16;
                let at = if is_ip6 { 4 } else { 2 };
                bytes[at..at + 2].copy_from_slice(&claimed.to_be_bytes());
                bytes
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn located_headers_equal_the_reference(
            mut bytes in packet(),
            before in 0..3_usize,
            changes in prop::collection::vec((0..120_usize, any::<u8>()), 0..3),
            cut in 0..200_usize,
        ) {
            for (at, byte) in changes {
                bytes.get_mut(at).into_iter().for_each(|it| *it = byte);
            }
            bytes.truncate(if cut < 100 { cut } else { bytes.len() });
            let expected = reference(&bytes).map(|it| Headers {
                network: before,
                end: before + it.end,
                transport: before + it.transport,
                payload: before + it.payload,
                ..it
            });
            let shifted = [&[0x45; 3][..before], &bytes].concat();
            prop_assert_eq!(Headers::of(&shifted, before), expected);
            let plain = [Headers::plain(&shifted, before), Headers::plain_ip6(&shifted, before)];
            for plain in plain.into_iter().flatten() {
                prop_assert_eq!(Some(plain), expected);
            }
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
                let found = Headers::of(&bytes, 0).expect("has headers");
                let room = found.end - found.transport;
                bytes[found.transport + Tcp::OFFSET_BYTE] = offset << 4;
                let length = usize::from(offset) * 4;
                let found = Headers::of(&bytes, 0).expect("has headers");
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
