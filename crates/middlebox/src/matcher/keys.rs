//! Builds keys of [`kit::rules`](castanet_kit::rules) from packets: maps header bits to key bits.

use crate::ct_state::CtState;
use crate::field::{Field, Layer};
use crate::headers::Headers;
use castanet_kit::rules::{Key, WORDS};
use castanet_wire::options::unpadded;
use castanet_wire::{Ipv4Header, Ipv6Header, Tcp, Udp, bits, extension, ip_proto, tcp};

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
/// Bytes 12 to 15 of a TCP header above, then the values of two options, then the state of the connection.
const TCP: usize = 7;

const PROTOCOL: Span = Span { word: HAS, shift: 0, count: 8 };
const MSS: Span = Span { word: TCP, shift: 16, count: 16 };
const WSCALE: Span = Span { word: TCP, shift: 8, count: 8 };
/// The state of the connection; filled in only if a rule tests it.
const CT_STATE: Span = Span { word: TCP, shift: 0, count: CtState::BITS as u32 };
/// Extension headers of IPv6, a bit each.
const EXTENSIONS: Span = Span { word: HAS, shift: 16, count: 16 };
/// Whether there is any TCP option.
const ANY_OPTION: u32 = 32;
/// TCP options that have a bit each, from the one after that on.
const OPTIONS: [u8; 7] = [
    tcp::OPTION_MSS,
    tcp::OPTION_WINDOW_SCALE,
    tcp::OPTION_SACK_PERMITTED,
    tcp::OPTION_SACK,
    tcp::OPTION_TIMESTAMPS,
    tcp::OPTION_MULTIPATH,
    tcp::OPTION_FAST_OPEN,
];
/// Whether these two options are as long as they should be, so that they have a value.
const HAS_MSS: u32 = 40;
const HAS_WSCALE: u32 = 41;
/// Other options share the bits from here on.
const RARE: u32 = 42;

/// The parts of keys that describe TCP options; they are filled in only if a rule tests them.
const OF_OPTIONS: Key = {
    let mut words = [0; WORDS];
    words[HAS] = u64::MAX << ANY_OPTION;
    words[TCP] = u64::MAX >> 32 & u64::MAX << WSCALE.shift;
    Key(words)
};

/// Whether a mask has something of TCP options.
pub(crate) fn is_of_options(mask: &Key) -> bool {
    *mask & OF_OPTIONS != Key::default()
}

/// The bit of an option that shares it.
const fn rare(kind: u8) -> u32 {
    RARE + kind as u32 % (u64::BITS - RARE)
}

const fn one(bit: u32) -> Span {
    Span { word: HAS, shift: bit, count: 1 }
}

/// The bit of a layer but [`Layer::Any`], behind the protocol.
const fn layer_bit(layer: Layer) -> u32 {
    PROTOCOL.count - 1 + layer as u32
}

/// The bit that says whether a packet has a layer; every packet has [`Layer::Any`].
pub(crate) fn layer(layer: Layer) -> Option<Span> {
    (layer != Layer::Any).then(|| one(layer_bit(layer)))
}

/// The bits of an extension header; any of them, without a number.
pub(crate) fn extension(number: u8) -> Option<Span> {
    let bit = extension::bit(number);
    (bit != 0).then(|| one(EXTENSIONS.shift + bit.trailing_zeros()))
}

/// That there is no extension header.
pub(crate) fn no_extension() -> Bits {
    EXTENSIONS.equal(0)
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

/// The state of the connection.
pub(crate) fn ct_state() -> Span {
    CT_STATE
}

/// Adds the state of its connection to the key of a packet.
#[inline]
pub(crate) fn fill_state(Key(words): &mut Key, state: CtState) {
    words[CT_STATE.word] |= (state as u64) << CT_STATE.shift;
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
    // The word, the header bit that it begins with, and the number of header bits in it.
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

/// Makes a key of a packet; `with_options`, if anybody asks for those.
#[inline]
pub(crate) fn fill(key: &mut Key, bytes: &[u8], headers: &Headers, with_options: bool) {
    let Headers { network, transport, protocol, upper, .. } = *headers;
    let header = bytes.get(network..).unwrap_or_default();
    let (layers, words) = match header.first_chunk() {
        Some(header) if !headers.is_ip6 => (1 << layer_bit(Layer::Ip4), four(header)),
        _ => {
            let extensions = u64::from(headers.extensions) << EXTENSIONS.shift;
            (1 << layer_bit(Layer::Ip6) | extensions, six(header))
        }
    };
    let mut has = u64::from(protocol) | layers;
    let (mut first, mut rest) = (0, 0);
    if upper != Layer::Any {
        has |= 1 << layer_bit(upper);
        first = bits::word(bytes, transport);
    }
    if upper == Layer::Tcp {
        rest = bits::word(bytes, transport + Tcp::OFFSET_BYTE) & UPPER_HALF;
        if with_options && headers.payload > transport + Tcp::LEN {
            let (bits, values) = options(bytes.get(headers.options_range()).unwrap_or_default());
            has |= bits;
            rest |= values;
        }
    }
    let [ip, ends, behind, dst, dst_low] = words;
    *key = Key([has, ip, ends, behind, dst, dst_low, first, rest]);
}

/// The same, quickly, of bytes that begin with an IPv4 header without options, of a packet
/// that is no fragment and carries UDP or TCP; nothing, and no whole key, of others.
#[inline(always)]
pub(crate) fn fill_plain(key: &mut Key, bytes: &[u8], with_options: bool) -> Option<()> {
    let header = bytes.first_chunk::<{ Ipv4Header::LEN }>()?;
    let (ip, segment) = (Ipv4Header::from_array(header), bytes.get(Ipv4Header::LEN..)?);
    let end = usize::from(ip.total_len()).min(bytes.len());
    let (layer, length) = match ip.protocol() {
        ip_proto::UDP => (Layer::Udp, Udp::LEN),
        ip_proto::TCP => (Layer::Tcp, Tcp::LEN),
        _ => return None,
    };
    if !ip.is_plain() || ip.is_fragment() || end < Ipv4Header::LEN + length {
        return None;
    }
    let mut has = u64::from(ip.protocol()) | 1 << layer_bit(Layer::Ip4) | 1 << layer_bit(layer);
    let mut rest = 0;
    if layer == Layer::Tcp {
        rest = bits::word(segment, Tcp::OFFSET_BYTE) & UPPER_HALF;
        let header = (rest >> (u64::BITS - 4)) as usize * 4;
        if header < Tcp::LEN || header > end - Ipv4Header::LEN {
            return None;
        }
        if with_options && header > Tcp::LEN {
            let (tcp, behind) = Tcp::from_prefix(bytes.get(Ipv4Header::LEN..end)?)?;
            let (bits, values) = options(tcp.split_options(behind).map_or(&[], |(list, _)| list));
            has |= bits;
            rest |= values;
        }
    }
    let [ip, ends, behind, dst, dst_low] = four(header);
    *key = Key([has, ip, ends, behind, dst, dst_low, bits::word(segment, 0), rest]);
    Some(())
}

/// Whether a key is that of an IP packet.
pub(crate) fn is_of_ip(Key(words): &Key) -> bool {
    words[HAS] & (1 << layer_bit(Layer::Ip4) | 1 << layer_bit(Layer::Ip6)) != 0
}

/// The words of an IPv4 header, from [`IP`] to those of an IPv6 destination.
#[inline]
fn four(header: &[u8; Ipv4Header::LEN]) -> [u64; 5] {
    let ends = bits::word(header, Ipv4Header::SRC);
    [bits::word(header, 0), ends, bits::word(header, Ipv4Header::TTL) & UPPER_HALF, 0, 0]
}

/// The same of an IPv6 header.
fn six(header: &[u8]) -> [u64; 5] {
    let (src, dst) = (Ipv6Header::SRC, Ipv6Header::DST);
    [0, src, src + 8, dst, dst + 8].map(|at| bits::word(header, at))
}

const _: () = assert!(
    matches!([HAS, IP, ENDS, REST, DST6, UPPER, TCP], [0, 1, 2, 3, 4, 6, 7]),
    "words are in the order in which they are filled in"
);

/// The first four bytes of a word.
const UPPER_HALF: u64 = u64::MAX << 32;

/// By kind: the bit of a TCP option, and whether it has that for itself.
const OPTION_BITS: [u8; 256] = {
    let mut bits = [0; 256];
    let mut kind = 0;
    while kind < bits.len() {
        bits[kind] = rare(kind as u8) as u8;
        kind += 1;
    }
    let mut at = 0;
    while at < OPTIONS.len() {
        bits[OPTIONS[at] as usize] = ANY_OPTION as u8 + 1 + at as u8;
        at += 1;
    }
    bits
};

/// Returns the option bits of a list, and the values of those options that keys have.
// By a call: in line it takes registers from the loop over a burst.
#[inline(never)]
fn options(list: &[u8]) -> (u64, u64) {
    let (mut has, mut values) = (0, 0);
    for option in unpadded(list) {
        let bit = 1 << OPTION_BITS[usize::from(option.kind)];
        let is_first = has & bit == 0;
        has |= bit | 1 << ANY_OPTION;
        // Of two of a kind the first counts.
        let (span, valid, value) = match (option.kind, option.data) {
            (tcp::OPTION_MSS, &[high, low]) => (MSS, HAS_MSS, u16::from_be_bytes([high, low])),
            (tcp::OPTION_WINDOW_SCALE, &[scale]) => (WSCALE, HAS_WSCALE, scale.into()),
            _ => continue,
        };
        if is_first {
            has |= 1 << valid;
            values |= u64::from(value) << span.shift;
        }
    }
    (has, values)
}
