//! Header strings: the bits of a packet that a function tests and changes.
//!
//! A header string is the same for packets with and without options, extension headers or VLAN tags:
//!
//! | bytes | IPv4 | IPv6 |
//! |---|---|---|
//! | 0 | [kind](kind) | kind |
//! | [source hash](SourceHash) | 1, 2 | 1, 2 |
//! | network header | 3 to 22, without options | 3 to 42, with the protocol of the transport header as next header |
//! | transport header, its first 16 bytes | 23 to 38 | 43 to 58 |
//!
//! Bytes that a packet does not have are 0.

use crate::bits::{Bits, HEADER_BYTES};
use crate::secret::Key;
use castanet_wire::checksum::{Delta, Sum};
use castanet_wire::headers::{Headers, Layer};
use castanet_wire::{Icmp, Ipv4Header, Ipv6Header, ip_proto, transport};
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use std::fmt::{Debug, Formatter};
use std::ops::Range;

/// Bits of the first byte of a header string.
pub mod kind {
    /// IPv6.
    pub const IP6: u8 = 0x80;
    /// A fragment.
    pub const FRAGMENT: u8 = 0x40;
    /// A fragment other than the first.
    pub const LATER_FRAGMENT: u8 = 0x20;
    /// By number of bytes from the transport header on: set if the packet has them, and is no later
    /// fragment. Entries refuse packets whose transport headers are cut, so these numbers tell apart
    /// what rules ask for: a first byte, the ports, the flags of TCP, and its window.
    pub const LENGTHS: [(usize, u8); 4] = [(1, 0x10), (4, 0x08), (14, 0x04), (16, 0x02)];
    /// Always set: no packet's header string is 0, which is that of a dropped packet.
    pub const PACKET: u8 = 0x01;
}

/// The hash of the source address, for functions that distribute packets.
pub const SOURCE_HASH: HeaderField = HeaderField::bytes(1, 2);
/// Offset of the network header in a header string.
const NETWORK: usize = 3;
/// Bytes of the transport header that a header string has.
pub const TRANSPORT_BYTES: usize = 16;
/// Bytes of both ports.
const PORTS: usize = 4;

/// A field of a header string.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderField {
    /// Its first bit.
    pub at: usize,
    /// Its width in bits.
    pub width: usize,
}

impl HeaderField {
    const fn bytes(at: usize, count: usize) -> HeaderField {
        HeaderField { at: 8 * at, width: 8 * count }
    }
}

/// The fields of one address family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderFields {
    /// TOS or traffic class.
    pub tos: HeaderField,
    /// TTL or hop limit.
    pub ttl: HeaderField,
    /// The transport protocol.
    pub protocol: HeaderField,
    /// The source address.
    pub src: HeaderField,
    /// The destination address.
    pub dst: HeaderField,
    /// The source port.
    pub sport: HeaderField,
    /// The destination port.
    pub dport: HeaderField,
}

/// The fields of IPv4.
pub const IP4: HeaderFields = {
    let transport = NETWORK + Ipv4Header::LEN;
    HeaderFields {
        tos: HeaderField::bytes(NETWORK + Ipv4Header::TOS, 1),
        ttl: HeaderField::bytes(NETWORK + Ipv4Header::TTL, 1),
        protocol: HeaderField::bytes(NETWORK + Ipv4Header::PROTOCOL, 1),
        src: HeaderField::bytes(NETWORK + Ipv4Header::SRC, 4),
        dst: HeaderField::bytes(NETWORK + Ipv4Header::DST, 4),
        sport: HeaderField::bytes(transport, 2),
        dport: HeaderField::bytes(transport + 2, 2),
    }
};

/// The fields of IPv6.
pub const IP6: HeaderFields = {
    let transport = NETWORK + Ipv6Header::LEN;
    HeaderFields {
        // Behind the version.
        tos: HeaderField { at: 8 * NETWORK + 4, width: 8 },
        ttl: HeaderField::bytes(NETWORK + Ipv6Header::HOP_LIMIT, 1),
        protocol: HeaderField::bytes(NETWORK + Ipv6Header::NEXT_HEADER, 1),
        src: HeaderField::bytes(NETWORK + Ipv6Header::SRC, 16),
        dst: HeaderField::bytes(NETWORK + Ipv6Header::DST, 16),
        sport: HeaderField::bytes(transport, 2),
        dport: HeaderField::bytes(transport + 2, 2),
    }
};

/// The hash of source addresses that the entry puts into header strings. It has a key, so that strangers
/// cannot choose addresses with one hash.
#[derive(Clone)]
pub struct SourceHash(RapidSecrets);

impl SourceHash {
    /// The hash with a key.
    pub fn new(key: &Key) -> SourceHash {
        let key = key.derive("castanet splitbox 1 hash of sources", &[]);
        let seed = key.expose().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        SourceHash(RapidSecrets::seed(seed))
    }

    /// Puts the hash of a packet's source address into its header string.
    #[inline]
    pub fn put(&self, headers: &Headers, string: &mut Bits) {
        let src = if headers.is_ip6 { IP6.src } else { IP4.src };
        let src = string.0.get(src.at / 8..(src.at + src.width) / 8).unwrap_or_default();
        let hash = rapidhash_v3_seeded(src, &self.0) as u16;
        let at = SOURCE_HASH.at / 8;
        string.0.iter_mut().skip(at).zip(hash.to_be_bytes()).for_each(|(to, from)| *to = from);
    }
}

impl Debug for SourceHash {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        f.write_str("SourceHash(..)")
    }
}

fn network_len(headers: &Headers) -> usize {
    if headers.is_ip6 { Ipv6Header::LEN } else { Ipv4Header::LEN }
}

/// The bytes of the ports in a packet, if it has them.
fn ports(headers: &Headers) -> Option<Range<usize>> {
    let has_ports = matches!(headers.upper, Layer::Tcp | Layer::Udp);
    has_ports.then_some(headers.transport..headers.transport + PORTS)
}

/// The header string of a packet, whose headers these are, with 0 for its source hash.
pub fn header_string(bytes: &[u8], headers: &Headers) -> Bits {
    let mut string = [0; HEADER_BYTES];
    let flags = [
        (true, kind::PACKET),
        (headers.is_ip6, kind::IP6),
        (headers.is_fragment, kind::FRAGMENT),
        (headers.is_later_fragment, kind::LATER_FRAGMENT),
    ];
    let behind = headers.end.saturating_sub(headers.transport);
    let lengths =
        kind::LENGTHS.map(|(least, flag)| (behind >= least && !headers.is_later_fragment, flag));
    let all = flags.iter().chain(&lengths).filter(|it| it.0);
    string[0] = all.fold(0, |all, it| all | it.1);
    let mut put = |at: usize, part: &[u8]| {
        let place = string.get_mut(at..at + part.len());
        place.into_iter().for_each(|place| place.copy_from_slice(part));
    };
    let len = network_len(headers);
    put(NETWORK, bytes.get(headers.network..headers.network + len).unwrap_or_default());
    if headers.is_ip6 {
        put(NETWORK + Ipv6Header::NEXT_HEADER, &[headers.protocol]);
    }
    if !headers.is_later_fragment {
        let end = headers.end.min(headers.transport + TRANSPORT_BYTES);
        put(NETWORK + len, bytes.get(headers.transport..end).unwrap_or_default());
    }
    Bits(string)
}

/// Writes TOS, TTL, addresses and ports of a changed header string to the packet that it is of, with
/// the checksums. All other fields stay as they are.
pub fn write_header_string(bytes: &mut [u8], headers: &Headers, changed: &Bits) {
    let len = network_len(headers);
    let (network, behind) = changed.0[NETWORK..].split_at(len);
    let delta = match headers.is_ip6 {
        false => write_ip4(bytes, headers, network),
        true => write_ip6(bytes, headers, network),
    };
    let Some(mut delta) = delta else { return };
    if let Some(old) = ports(headers).and_then(|at| bytes.get_mut(at)) {
        delta = delta.sum(Sum::new().slice(old), Sum::new().slice(&behind[..PORTS]));
        old.copy_from_slice(&behind[..PORTS]);
    }
    let segment = bytes.get_mut(headers.transport..headers.end).unwrap_or_default();
    match (headers.protocol, headers.is_later_fragment) {
        (_, true) => {}
        (ip_proto::ICMPV6, _) if headers.is_ip6 => {
            if let Some((icmp, _)) = Icmp::from_prefix_mut(segment) {
                icmp.adjust_checksum(delta);
            }
        }
        (protocol, _) => transport::adjust_checksum(protocol, segment, delta),
    }
}

/// Writes the fields of an IPv4 header; returns the change of the pseudo header.
fn write_ip4(bytes: &mut [u8], headers: &Headers, new: &[u8]) -> Option<Delta> {
    let (new, _) = Ipv4Header::from_prefix(new)?;
    let (ip, _) = Ipv4Header::from_prefix_mut(bytes.get_mut(headers.network..)?)?;
    let before = Sum::new().slice(ip.bytes());
    let pseudo = Delta::new().addr(ip.src(), new.src()).addr(ip.dst(), new.dst());
    ip.set_tos(new.tos());
    ip.set_ttl(new.ttl());
    ip.set_src(new.src());
    ip.set_dst(new.dst());
    ip.adjust_checksum(Delta::new().sum(before, Sum::new().slice(ip.bytes())));
    Some(pseudo)
}

/// Writes the fields of an IPv6 header; returns the change of the pseudo header.
fn write_ip6(bytes: &mut [u8], headers: &Headers, new: &[u8]) -> Option<Delta> {
    let (new, _) = Ipv6Header::from_prefix(new)?;
    let (ip, _) = Ipv6Header::from_prefix_mut(bytes.get_mut(headers.network..)?)?;
    let pseudo = Delta::new().addr6(ip.src(), new.src()).addr6(ip.dst(), new.dst());
    ip.set_traffic_class(new.traffic_class());
    ip.set_hop_limit(new.hop_limit());
    ip.set_src(new.src());
    ip.set_dst(new.dst());
    Some(pseudo)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Ternary;
    use castanet_wire::sketch;
    use proptest::prelude::*;

    fn build(text: &str) -> (Vec<u8>, Headers) {
        let bytes = sketch::build(text).unwrap_or_else(|e| panic!("{text}: {e}")).bytes;
        let headers = Headers::of(&bytes, 0).expect("is an IP packet");
        (bytes, headers)
    }

    fn set(action: Ternary, field: HeaderField, value: u128) -> Ternary {
        action.with(field.at, field.width, value)
    }

    #[test]
    fn changed_packets_have_right_checksums() {
        let four = set(set(Ternary::ANY, IP4.src, 0x0909_0909), IP4.sport, 77);
        let six = set(set(set(Ternary::ANY, IP6.dst, 9), IP6.dport, 77), IP6.tos, 0x1f);
        let lower = set(Ternary::ANY, IP4.ttl, 3);
        for (before, action, after) in [
            ("1.0.0.1:5 > 2.0.0.2:6 udp \"abc\"", four, "9.9.9.9:77 > 2.0.0.2:6 udp \"abc\""),
            ("1.0.0.1:5 > 2.0.0.2:6 tcp syn seq 9", four, "9.9.9.9:77 > 2.0.0.2:6 tcp syn seq 9"),
            (
                "1.0.0.1:5 > 2.0.0.2:6 udp nocheck ipopt 0x01010100",
                four,
                "9.9.9.9:77 > 2.0.0.2:6 udp nocheck ipopt 0x01010100",
            ),
            ("1.0.0.1 > 2.0.0.2 icmp type echo", four, "9.9.9.9 > 2.0.0.2 icmp type echo"),
            ("1.0.0.1:5 > 2.0.0.2:6 udp ttl 9", lower, "1.0.0.1:5 > 2.0.0.2:6 udp ttl 3"),
            ("[::1]:5 > [::2]:6 tcp \"x\"", six, "[::1]:5 > [::9]:77 tcp class 31 \"x\""),
            ("::1 > ::2 icmp6 type 128", six, "::1 > ::9 icmp6 type 128 class 31"),
        ] {
            let (mut bytes, headers) = build(before);
            let changed = action.apply(header_string(&bytes, &headers));
            write_header_string(&mut bytes, &headers, &changed);
            let layer = sketch::Layer::Network;
            assert_eq!(sketch::print(&bytes, layer), sketch::print(&build(after).0, layer));
            assert_eq!(bytes, build(after).0, "{before}");
        }
    }

    #[test]
    fn later_fragments_keep_their_bytes() {
        let (mut bytes, headers) = build("1.0.0.1 > 2.0.0.2 udp id 7 frag 16 len 60");
        let string = header_string(&bytes, &headers);
        assert_eq!(string.0[0], kind::PACKET | kind::FRAGMENT | kind::LATER_FRAGMENT);
        assert!(string.0[IP4.sport.at / 8..].iter().all(|&byte| byte == 0));
        let before = bytes[20..].to_vec();
        let changed = set(set(Ternary::ANY, IP4.dst, 1), IP4.dport, 9).apply(string);
        write_header_string(&mut bytes, &headers, &changed);
        assert_eq!(bytes[20..], before);
        assert_eq!(header_string(&bytes, &headers).0[19..23], [0, 0, 0, 1]);
    }

    #[test]
    fn source_hashes_depend_on_source_and_key() {
        let hash = |text: &str, key: u8| {
            let (bytes, headers) = build(text);
            let mut string = header_string(&bytes, &headers);
            let before = string;
            SourceHash::new(&Key::from_bytes([key; 32])).put(&headers, &mut string);
            assert_eq!(string.0[3..], before.0[3..]);
            string.0[1..3].to_vec()
        };
        let first = hash("1.0.0.1:5 > 2.0.0.2:80 udp", 1);
        assert_eq!(first, hash("1.0.0.1:6 > 2.0.0.3:81 tcp", 1));
        assert_ne!(first, hash("1.0.0.1:5 > 2.0.0.2:80 udp", 2));
        assert_ne!(hash("[::1]:5 > [::2]:6 udp", 1), hash("[::3]:5 > [::2]:6 udp", 1));
    }

    #[test]
    fn the_protocol_of_ipv6_is_that_of_the_transport_header() {
        let (bytes, headers) = build("[::1]:5 > [::2]:6 udp id 1 frag 0+");
        let string = header_string(&bytes, &headers);
        assert_eq!(string.0[IP6.protocol.at / 8], ip_proto::UDP);
        let lengths = kind::LENGTHS[0].1 | kind::LENGTHS[1].1;
        assert_eq!(string.0[0], kind::PACKET | kind::IP6 | kind::FRAGMENT | lengths);
    }

    proptest! {
        /// Writing an unchanged header string changes nothing, whatever the packet.
        #[test]
        fn unchanged_strings_change_nothing(
            is_ip6: bool,
            bytes in prop::collection::vec(any::<u8>(), 0..90),
            change: (u8, u8),
        ) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = if is_ip6 { 0x60 | change.0 & 0xf } else { 0x45 | change.0 & 2 };
            }
            if let (true, Some(protocol)) = (change.1 > 99, bytes.get_mut(if is_ip6 { 6 } else { 9 })) {
                *protocol = [ip_proto::TCP, ip_proto::UDP, ip_proto::ICMPV6][usize::from(change.1) % 3];
            }
            if let Some(headers) = Headers::of(&bytes, 0) {
                let before = bytes.clone();
                let string = header_string(&bytes, &headers);
                prop_assert!(!string.is_zero());
                write_header_string(&mut bytes, &headers, &string);
                prop_assert_eq!(before, bytes);
            }
        }
    }
}
