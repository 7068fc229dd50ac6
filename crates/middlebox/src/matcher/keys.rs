//! Packets as keys of [`kit::rules`](castanet_kit::rules): which bits of a key are which
//! bits of which header.

use crate::field::{Field, Layer};
use crate::headers::Headers;
use castanet_kit::rules::Key;
use castanet_wire::{Ipv4Header, Ipv6Header, Tcp, bits, tcp};

/// Some bits of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bits {
    pub(crate) word: usize,
    pub(crate) mask: u64,
    pub(crate) value: u64,
}

/// Bits of a key that are one number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    word: usize,
    shift: u32,
    pub(crate) count: u32,
}

impl Span {
    /// These bits under a mask, counted from the number's lowest.
    pub(crate) fn masked(self, mask: u64, value: u64) -> Bits {
        let all = u64::MAX >> (u64::BITS - self.count);
        let mask = mask & all;
        Bits { word: self.word, mask: mask << self.shift, value: (value & mask) << self.shift }
    }

    /// These bits, all of them.
    pub(crate) fn equal(self, value: u64) -> Bits {
        self.masked(u64::MAX, value)
    }
}

/// The word of what a packet has at all: its protocol, its layers, its options.
const HAS: usize = 0;
/// The first eight bytes of the IP header.
const IP: usize = 1;
/// Source and destination of IPv4; the first half of an IPv6 source.
const ENDS: usize = 2;
/// Bytes 8 to 11 of an IPv4 header above; the second half of an IPv6 source.
const REST: usize = 3;
/// An IPv6 destination.
const DST6: usize = 4;
/// The first eight bytes of the transport header.
const UPPER: usize = 6;
/// Bytes 12 to 15 of a TCP header above, then the values of two options.
const TCP: usize = 7;

const PROTOCOL: Span = Span { word: HAS, shift: 0, count: 8 };
const MSS: Span = Span { word: TCP, shift: 16, count: 16 };
const WSCALE: Span = Span { word: TCP, shift: 8, count: 8 };
/// Extension headers of IPv6, a bit each.
const EXTENSIONS: u32 = 16;
/// Whether there is any TCP option.
const ANY_OPTION: u32 = 32;
/// TCP options that have a bit each, from the one after that on.
const OPTIONS: [u8; 7] = [
    tcp::OPTION_MSS,
    tcp::OPTION_WINDOW_SCALE,
    tcp::OPTION_SACK_PERMITTED,
    tcp::OPTION_SACK,
    tcp::OPTION_TIMESTAMPS,
    30,
    34,
];
/// Whether these two options are as long as they should be, so that they have a value.
const HAS_MSS: u32 = 40;
const HAS_WSCALE: u32 = 41;
/// Other options share the bits from here on.
const RARE: u32 = 42;

/// The bit of an option that shares it.
const fn rare(kind: u8) -> u32 {
    RARE + kind as u32 % (u64::BITS - RARE)
}

const fn one(bit: u32) -> Span {
    Span { word: HAS, shift: bit, count: 1 }
}

/// The bit that says whether a packet has a layer; every packet has [`Layer::Any`].
pub(crate) fn layer(layer: Layer) -> Option<Span> {
    let bit = match layer {
        Layer::Any => return None,
        Layer::Ip4 => 8,
        Layer::Ip6 => 9,
        Layer::Icmp => 10,
        Layer::Icmp6 => 11,
        Layer::Udp => 12,
        Layer::Tcp => 13,
    };
    Some(one(bit))
}

/// The bits of an extension header; any of them, without a number.
pub(crate) fn extension(number: u8) -> Option<Span> {
    let bits = Headers::extension_bit(Some(number));
    (bits != 0).then(|| one(EXTENSIONS + bits.trailing_zeros()))
}

/// That there is no extension header.
pub(crate) fn no_extension() -> Bits {
    Span { word: HAS, shift: EXTENSIONS, count: 16 }.equal(0)
}

/// The bit of a TCP option, or of any; and whether no other option has it.
pub(crate) fn option(field: Field) -> (Span, bool) {
    let Some(kind) = field.option_kind() else { return (one(ANY_OPTION), true) };
    match OPTIONS.iter().position(|&it| it == kind) {
        Some(at) => (one(ANY_OPTION + 1 + at as u32), true),
        None => (one(rare(kind)), false),
    }
}

/// The value of a TCP option, and the bit that says whether it has one.
pub(crate) fn option_value(field: Field) -> Option<(Span, Span)> {
    match field.option_kind()? {
        tcp::OPTION_MSS => Some((MSS, one(HAS_MSS))),
        tcp::OPTION_WINDOW_SCALE => Some((WSCALE, one(HAS_WSCALE))),
        _ => None,
    }
}

/// The protocol that a packet carries.
pub(crate) fn protocol() -> Span {
    PROTOCOL
}

/// Bits of a layer's header, from bit `first` of it on, if keys have them.
pub(crate) fn span(layer: Layer, first: usize, count: usize) -> Option<Span> {
    // The protocol of IPv4 lies beside the layers, where most rules look anyway.
    if layer == Layer::Ip4 && (first, count) == (Ipv4Header::PROTOCOL * 8, 8) {
        return Some(PROTOCOL);
    }
    // Where a word's first bit comes from, how many follow, and where they are in it.
    let (word, from, bits) = match layer {
        Layer::Ip4 | Layer::Ip6 if first < 64 => (IP, 0, 64),
        Layer::Ip4 if first >= Ipv4Header::SRC * 8 => (ENDS, Ipv4Header::SRC * 8, 64),
        Layer::Ip4 => (REST, 64, 32),
        Layer::Icmp | Layer::Icmp6 | Layer::Udp | Layer::Tcp if first < 64 => (UPPER, 0, 64),
        Layer::Tcp if first >= Tcp::OFFSET_BYTE * 8 => (TCP, Tcp::OFFSET_BYTE * 8, 32),
        _ => return None,
    };
    let end = (first - from) + count;
    (end <= bits && count > 0).then(|| Span { word, shift: (64 - end) as u32, count: count as u32 })
}

/// The words of an IPv6 address, if these are the bits of one.
pub(crate) fn words6(first: usize) -> Option<[usize; 2]> {
    match first / 8 {
        Ipv6Header::SRC => Some([ENDS, REST]),
        Ipv6Header::DST => Some([DST6, DST6 + 1]),
        _ => None,
    }
}

/// A packet as a key.
#[inline]
pub(crate) fn key(bytes: &[u8], headers: &Headers) -> Key {
    let mut key = Key::default();
    let words = &mut key.0;
    let at = headers.network;
    let mut has = u64::from(headers.protocol);
    words[IP] = bits::word(bytes, at);
    if headers.is_ip6 {
        has |= 1 << 9 | u64::from(headers.extensions()) << EXTENSIONS;
        words[ENDS] = bits::word(bytes, at + Ipv6Header::SRC);
        words[REST] = bits::word(bytes, at + Ipv6Header::SRC + 8);
        words[DST6] = bits::word(bytes, at + Ipv6Header::DST);
        words[DST6 + 1] = bits::word(bytes, at + Ipv6Header::DST + 8);
    } else {
        has |= 1 << 8;
        words[ENDS] = bits::word(bytes, at + Ipv4Header::SRC);
        words[REST] = bits::word(bytes, at + 8) & u64::MAX << 32;
    }
    if headers.upper != Layer::Any {
        has |= layer(headers.upper).map_or(0, |span| 1 << span.shift);
        words[UPPER] = bits::word(bytes, headers.transport);
    }
    if headers.upper == Layer::Tcp {
        let rest = bits::word(bytes, headers.transport + Tcp::OFFSET_BYTE);
        words[TCP] = rest & u64::MAX << 32;
        if !headers.options.is_empty() {
            let (bits, values) = options(bytes, headers);
            has |= bits;
            words[TCP] |= values;
        }
    }
    words[HAS] = has;
    key
}

/// Which options there are, and the values of those that keys have.
fn options(bytes: &[u8], headers: &Headers) -> (u64, u64) {
    let (mut has, mut values) = (1 << ANY_OPTION, 0);
    let start = headers.options_range().start;
    for option in headers.options.iter() {
        let Some(at) = OPTIONS.iter().position(|&kind| kind == option.kind) else {
            has |= 1 << rare(option.kind);
            continue;
        };
        let bit = 1 << (ANY_OPTION + 1 + at as u32);
        // Of two of a kind the first counts.
        if has & bit != 0 {
            continue;
        }
        has |= bit;
        let value = bits::word(bytes, start + usize::from(option.at));
        let (span, valid) = match (option.kind, option.len) {
            (tcp::OPTION_MSS, 2) => (MSS, HAS_MSS),
            (tcp::OPTION_WINDOW_SCALE, 1) => (WSCALE, HAS_WSCALE),
            _ => continue,
        };
        has |= 1 << valid;
        values |= (value >> (u64::BITS - span.count)) << span.shift;
    }
    (has, values)
}
