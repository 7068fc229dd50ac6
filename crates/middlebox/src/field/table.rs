//! The list of fields: parser, help, completion and documentation come from it.

use super::{FieldLocation, FieldSpec, Kind, Layer, LimitScope};
use castanet_wire::{Ethernet, Icmp, Ipv4Header, Ipv6Header, Tcp, Udp, ip_proto, tcp};

const fn spec(
    name: &'static str,
    layer: Layer,
    location: FieldLocation,
    kind: Kind,
    doc: &'static str,
) -> FieldSpec {
    FieldSpec { name, layer, location, kind, maps: false, shuffles: false, doc }
}

/// Bits of a header, from bit `within` of byte `byte` on.
const fn bits(byte: usize, within: u16, count: u16) -> FieldLocation {
    FieldLocation::Bits { first: byte as u16 * 8 + within, count }
}

/// A field that `map` takes too.
const fn mapped(spec: FieldSpec) -> FieldSpec {
    FieldSpec { maps: true, ..spec }
}

/// A field that `shuffle` takes too.
const fn shuffled(spec: FieldSpec) -> FieldSpec {
    FieldSpec { shuffles: true, ..spec }
}

const fn number(
    name: &'static str,
    layer: Layer,
    byte: usize,
    count: u16,
    doc: &'static str,
) -> FieldSpec {
    spec(name, layer, bits(byte, 0, count), Kind::Number, doc)
}

const fn sum(name: &'static str, layer: Layer, byte: usize, doc: &'static str) -> FieldSpec {
    spec(name, layer, bits(byte, 0, 16), Kind::Checksum, doc)
}

const fn payload(name: &'static str, layer: Layer, doc: &'static str) -> FieldSpec {
    spec(name, layer, FieldLocation::Payload, Kind::Prefix, doc)
}

/// A flag of IPv4: which bit of flags and fragment offset.
const fn ip_flag(name: &'static str, bit: u16, doc: &'static str) -> FieldSpec {
    spec(name, Layer::Ip4, bits(Ipv4Header::FRAGMENT_WORD, bit, 1), Kind::Flag, doc)
}

/// A flag of TCP: which bit of the flags, counted from the first on the wire.
const fn tcp_flag(name: &'static str, flag: u8, doc: &'static str) -> FieldSpec {
    let bit = flag.leading_zeros() as u16;
    spec(name, Layer::Tcp, bits(Tcp::FLAGS, bit, 1), Kind::Flag, doc)
}

/// A value of explicit congestion notification, in IPv4.
const fn ecn(name: &'static str, value: u8, doc: &'static str) -> FieldSpec {
    spec(name, Layer::Ip4, bits(Ipv4Header::TOS, 6, 2), Kind::Named(value), doc)
}

const fn extension(name: &'static str, protocol: Option<u8>, doc: &'static str) -> FieldSpec {
    spec(name, Layer::Ip6, FieldLocation::Extension(protocol), Kind::Presence, doc)
}

const fn option(name: &'static str, number: u8, kind: Kind, doc: &'static str) -> FieldSpec {
    spec(name, Layer::Tcp, FieldLocation::Option(Some(number)), kind, doc)
}

/// An address in the Ethernet header, at a byte.
const fn station(name: &'static str, byte: usize, doc: &'static str) -> FieldSpec {
    let location = FieldLocation::Ethernet { first: byte as u16 * 8, count: 48 };
    spec(name, Layer::Any, location, Kind::Station, doc)
}

use Layer::{Any, Icmp as I4, Icmp6 as I6, Ip4, Ip6, Tcp as T, Udp as U};

/// Every field, in the order of the documentation.
#[rustfmt::skip] // a table
pub static FIELDS: &[FieldSpec] = &[
    spec("all", Any, FieldLocation::Everywhere, Kind::Presence, "Every IP packet; alone."),
    spec("in", Any, FieldLocation::In, Kind::Interface, "The interface that the packet came in by."),
    spec("out", Any, FieldLocation::Out, Kind::Interface, "The interface that the packet is to leave by."),
    spec("net-proto", Any, FieldLocation::Version, Kind::Version, "Whether it is IPv4 or IPv6."),
    spec("proto", Any, FieldLocation::Upper, Kind::Protocol, "What the packet carries, of IPv4 as of IPv6: there behind extension headers."),

    station("eth-saddr", Ethernet::SRC, "Source station, where the packet came with an Ethernet header."),
    station("eth-daddr", Ethernet::DST, "Destination station, where the packet came with an Ethernet header."),
    spec("vlan-id", Any, FieldLocation::Vlan { first: 4, count: 12 }, Kind::Number, "Number of the VLAN in the first tag; alone: the packet has a tag."),
    spec("vlan-pcp", Any, FieldLocation::Vlan { first: 0, count: 3 }, Kind::Number, "Priority in the first tag."),

    spec("ct-state", Any, FieldLocation::ConnectionState, Kind::State, "State of the packet's connection."),
    spec("ct-count", Any, FieldLocation::ConnectionCount(LimitScope::Rule), Kind::Number, "Number of connections of the rule; stateful, with `<` or `<=`."),
    spec("ct-count-saddr", Any, FieldLocation::ConnectionCount(LimitScope::Source), Kind::Number, "Number of connections of the rule from the same source."),
    spec("ct-count-daddr", Any, FieldLocation::ConnectionCount(LimitScope::Destination), Kind::Number, "Number of connections of the rule to the same destination."),
    spec("rate", Any, FieldLocation::Rate(LimitScope::Rule), Kind::Rate, "Rate of the packets that the rest of the rule matches, with `<=` or `>`."),
    spec("rate-saddr", Any, FieldLocation::Rate(LimitScope::Source), Kind::Rate, "The same of each source address."),
    spec("rate-daddr", Any, FieldLocation::Rate(LimitScope::Destination), Kind::Rate, "The same of each destination address."),
    spec("chain", Any, FieldLocation::Chain, Kind::Chain, "The packet is matched by a rule with `jump` to that chain."),

    spec("ip-ver", Ip4, bits(Ipv4Header::VERSION_IHL, 0, 4), Kind::Number, "Version: 4."),
    spec("ip-ihl", Ip4, bits(Ipv4Header::VERSION_IHL, 4, 4), Kind::Number, "Length of the header in fours of bytes."),
    spec("ip-dscp", Ip4, bits(Ipv4Header::TOS, 0, 6), Kind::Number, "Differentiated services code point."),
    spec("ip-ecn", Ip4, bits(Ipv4Header::TOS, 6, 2), Kind::Number, "Explicit congestion notification."),
    ecn("ip-non-ect", 0, "ECN: the sender does not take part."),
    ecn("ip-ect0", 2, "ECN: the sender takes part."),
    ecn("ip-ect1", 1, "ECN: the sender takes part, in the other way."),
    ecn("ip-ce", 3, "ECN: congestion was met."),
    number("ip-len", Ip4, Ipv4Header::TOTAL_LEN, 16, "Length of the whole packet."),
    mapped(shuffled(number("ip-id", Ip4, Ipv4Header::ID, 16, "Identification."))),
    spec("ip-flags", Ip4, bits(Ipv4Header::FRAGMENT_WORD, 0, 3), Kind::Number, "The three flags."),
    ip_flag("ip-res", 0, "The reserved flag."),
    ip_flag("ip-df", 1, "The flag that forbids routers to fragment."),
    ip_flag("ip-mf", 2, "The flag that more fragments follow."),
    spec("ip-frag-offset", Ip4, bits(Ipv4Header::FRAGMENT_WORD, 3, 13), Kind::Number, "Offset of the fragment in eights of bytes."),
    number("ip-ttl", Ip4, Ipv4Header::TTL, 8, "Hops that are left."),
    spec("ip-proto", Ip4, bits(Ipv4Header::PROTOCOL, 0, 8), Kind::Protocol, "What the packet carries."),
    sum("ip-checksum", Ip4, Ipv4Header::CHECKSUM, "Checksum of the header."),
    mapped(spec("ip-saddr", Ip4, bits(Ipv4Header::SRC, 0, 32), Kind::Address4, "Source address.")),
    mapped(spec("ip-daddr", Ip4, bits(Ipv4Header::DST, 0, 32), Kind::Address4, "Destination address.")),
    payload("ip-payload", Ip4, "What follows the header and its options."),

    spec("ip6-ver", Ip6, bits(0, 0, 4), Kind::Number, "Version: 6."),
    spec("ip6-traffic-class", Ip6, bits(0, 4, 8), Kind::Number, "Code point and ECN together."),
    spec("ip6-dscp", Ip6, bits(0, 4, 6), Kind::Number, "Differentiated services code point."),
    spec("ip6-ecn", Ip6, bits(0, 10, 2), Kind::Number, "Explicit congestion notification."),
    mapped(shuffled(spec("ip6-flow-label", Ip6, bits(0, 12, 20), Kind::Number, "Flow label."))),
    number("ip6-len", Ip6, Ipv6Header::PAYLOAD_LEN, 16, "Length of what follows the header."),
    spec("ip6-next", Ip6, bits(Ipv6Header::NEXT_HEADER, 0, 8), Kind::Protocol, "What follows the header: an extension header, perhaps."),
    spec("ip6-proto", Ip6, FieldLocation::Upper, Kind::Protocol, "What the packet carries behind its extension headers."),
    number("ip6-hop-limit", Ip6, Ipv6Header::HOP_LIMIT, 8, "Hops that are left."),
    mapped(spec("ip6-saddr", Ip6, bits(Ipv6Header::SRC, 0, 128), Kind::Address6, "Source address.")),
    mapped(spec("ip6-daddr", Ip6, bits(Ipv6Header::DST, 0, 128), Kind::Address6, "Destination address.")),
    payload("ip6-payload", Ip6, "What follows the header, extension headers first."),
    extension("ip6-eh", None, "Any extension header."),
    extension("ip6-eh-hopbyhop", Some(ip_proto::HOP_BY_HOP), "Hop-by-hop options."),
    extension("ip6-eh-routing", Some(ip_proto::ROUTING), "A routing header."),
    extension("ip6-eh-fragment", Some(ip_proto::FRAGMENT), "A fragment header."),
    extension("ip6-eh-esp", Some(ip_proto::ESP), "An encrypted payload."),
    extension("ip6-eh-ah", Some(ip_proto::AH), "An authentication header."),
    extension("ip6-eh-destopt", Some(ip_proto::DESTINATION_OPTIONS), "Destination options."),
    extension("ip6-eh-mobility", Some(ip_proto::MOBILITY), "A mobility header."),
    extension("ip6-eh-hip", Some(ip_proto::HIP), "A header of the host identity protocol."),
    extension("ip6-eh-shim6", Some(ip_proto::SHIM6), "A Shim6 header."),

    number("icmp-type", I4, Icmp::KIND, 8, "Type."),
    number("icmp-code", I4, Icmp::CODE, 8, "Code."),
    sum("icmp-checksum", I4, Icmp::CHECKSUM, "Checksum."),
    payload("icmp-payload", I4, "What follows the first eight bytes."),

    number("icmp6-type", I6, Icmp::KIND, 8, "Type."),
    number("icmp6-code", I6, Icmp::CODE, 8, "Code."),
    sum("icmp6-checksum", I6, Icmp::CHECKSUM, "Checksum."),
    payload("icmp6-payload", I6, "What follows the first eight bytes."),

    mapped(shuffled(number("udp-sport", U, Udp::SRC_PORT, 16, "Source port."))),
    mapped(shuffled(number("udp-dport", U, Udp::DST_PORT, 16, "Destination port."))),
    number("udp-len", U, Udp::LENGTH, 16, "Length of header and payload."),
    sum("udp-checksum", U, Udp::CHECKSUM, "Checksum; 0 for none."),
    payload("udp-payload", U, "What follows the header."),

    mapped(shuffled(number("tcp-sport", T, Tcp::SRC_PORT, 16, "Source port."))),
    mapped(shuffled(number("tcp-dport", T, Tcp::DST_PORT, 16, "Destination port."))),
    shuffled(number("tcp-seq-num", T, Tcp::SEQ, 32, "Sequence number.")),
    shuffled(number("tcp-ack-num", T, Tcp::ACK, 32, "Acknowledgment number.")),
    spec("tcp-offset", T, bits(Tcp::OFFSET_BYTE, 0, 4), Kind::Number, "Length of the header in fours of bytes."),
    spec("tcp-reserved", T, bits(Tcp::OFFSET_BYTE, 4, 4), Kind::Number, "The reserved bits."),
    number("tcp-urg-ptr", T, Tcp::URGENT, 16, "Urgent pointer."),
    number("tcp-flags", T, Tcp::FLAGS, 8, "The eight flags."),
    tcp_flag("tcp-cwr", tcp::flag::CWR, "Flag: congestion window reduced."),
    tcp_flag("tcp-ece", tcp::flag::ECE, "Flag: echo of congestion experienced."),
    tcp_flag("tcp-urg", tcp::flag::URG, "Flag: the urgent pointer counts."),
    tcp_flag("tcp-ack", tcp::flag::ACK, "Flag: the acknowledgment number counts."),
    tcp_flag("tcp-push", tcp::flag::PSH, "Flag: hand the data up at once."),
    tcp_flag("tcp-rst", tcp::flag::RST, "Flag: the connection is reset."),
    tcp_flag("tcp-syn", tcp::flag::SYN, "Flag: sequence numbers start here."),
    tcp_flag("tcp-fin", tcp::flag::FIN, "Flag: no more data from the sender."),
    number("tcp-win", T, Tcp::WINDOW, 16, "Window."),
    sum("tcp-checksum", T, Tcp::CHECKSUM, "Checksum."),
    payload("tcp-payload", T, "What follows the header and its options."),

    option("tcp-opt-mss", tcp::OPTION_MSS, Kind::Number, "Option: maximum segment size."),
    option("tcp-opt-wscale", tcp::OPTION_WINDOW_SCALE, Kind::Number, "Option: window scale."),
    option("tcp-opt-sackp", tcp::OPTION_SACK_PERMITTED, Kind::Presence, "Option: selective acknowledgments are understood."),
    shuffled(option("tcp-opt-sack", tcp::OPTION_SACK, Kind::Bytes, "Option: selective acknowledgments.")),
    option("tcp-opt-timestamp", tcp::OPTION_TIMESTAMPS, Kind::Number, "Option: time stamp, and the one echoed."),
    option("tcp-opt-mptcp", tcp::OPTION_MULTIPATH, Kind::Bytes, "Option: multipath TCP."),
    option("tcp-opt-fast-open", tcp::OPTION_FAST_OPEN, Kind::Bytes, "Option: fast open, with its cookie."),
    spec("tcp-opt", T, FieldLocation::Option(None), Kind::Bytes, "Any option, or, with a number behind it, the option of that kind."),
];
