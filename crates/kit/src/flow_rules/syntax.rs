//! Tables of the items and fields of flow rules, with the layouts of their headers.

/// A kind of item of a pattern: a header, or metadata of a packet.
#[derive(Debug, PartialEq, Eq)]
pub struct ItemSyntax {
    /// Its name in rules.
    pub name: &'static str,
    /// Bytes of its header as DPDK has it, in network byte order.
    pub len: usize,
    pub(super) fields: &'static [Field],
}

/// A field of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: &'static str,
    /// First bit, counted from the header's first and most significant one.
    pub(super) at: usize,
    pub(super) bits: usize,
    pub(super) form: Form,
}

/// The form in which values of a field are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A number, in network byte order.
    Number,
    /// A number of 32 bits, in the byte order of the machine.
    Native,
    /// An Ethernet address.
    Mac,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
}

const fn number(name: &'static str, at: usize, bits: usize) -> Field {
    Field { name, at, bits, form: Form::Number }
}

const fn native(name: &'static str) -> Field {
    Field { name, at: 0, bits: 32, form: Form::Native }
}

const fn mac(name: &'static str, at: usize) -> Field {
    Field { name, at, bits: 48, form: Form::Mac }
}

const fn ipv4(name: &'static str, at: usize) -> Field {
    Field { name, at, bits: 32, form: Form::Ipv4 }
}

const fn ipv6(name: &'static str, at: usize) -> Field {
    Field { name, at, bits: 128, form: Form::Ipv6 }
}

const fn item(name: &'static str, len: usize, fields: &'static [Field]) -> ItemSyntax {
    ItemSyntax { name, len, fields }
}

/// Source and destination port, of UDP, TCP and SCTP.
const PORTS: [Field; 2] = [number("src", 0, 16), number("dst", 16, 16)];

/// GTP's header (3GPP TS 29.281, section 5.1).
const GTP: &[Field] =
    &[number("v_pt_rsv_flags", 0, 8), number("msg_type", 8, 8), number("teid", 32, 32)];

/// All items. Their order is that of the table in `crates/io/src/sys/dpdk/flow.c`.
pub const ITEMS: &[ItemSyntax] = &[
    item("void", 0, &[]),
    item("invert", 0, &[]),
    item("any", 4, &[native("num")]),
    item("mark", 4, &[native("id")]),
    item("port_id", 4, &[native("id")]),
    item("eth", 14, &[mac("dst", 0), mac("src", 48), number("type", 96, 16)]),
    item(
        "vlan",
        4,
        &[
            number("tci", 0, 16),
            number("pcp", 0, 3),
            number("dei", 3, 1),
            number("vid", 4, 12),
            number("inner_type", 16, 16),
        ],
    ),
    item(
        "ipv4",
        20,
        &[
            number("version_ihl", 0, 8),
            number("tos", 8, 8),
            number("length", 16, 16),
            number("packet_id", 32, 16),
            number("fragment_offset", 48, 16),
            number("ttl", 64, 8),
            number("proto", 72, 8),
            ipv4("src", 96),
            ipv4("dst", 128),
        ],
    ),
    item(
        "ipv6",
        40,
        &[
            number("tc", 4, 8),
            number("flow", 12, 20),
            number("proto", 48, 8),
            number("hop", 56, 8),
            ipv6("src", 64),
            ipv6("dst", 192),
        ],
    ),
    item(
        "icmp",
        8,
        &[
            number("type", 0, 8),
            number("code", 8, 8),
            number("ident", 32, 16),
            number("seq", 48, 16),
        ],
    ),
    item("icmp6", 4, &[number("type", 0, 8), number("code", 8, 8)]),
    item("udp", 8, &PORTS),
    item("tcp", 20, &[PORTS[0], PORTS[1], number("flags", 104, 8)]),
    item("sctp", 12, &[PORTS[0], PORTS[1], number("tag", 32, 32), number("cksum", 64, 32)]),
    // DPDK aligns its IPv4 addresses, which the header on the wire does not.
    item(
        "arp_eth_ipv4",
        32,
        &[mac("sha", 64), ipv4("spa", 128), mac("tha", 160), ipv4("tpa", 224)],
    ),
    item("vxlan", 8, &[number("vni", 32, 24), number("last_rsvd", 56, 8)]),
    item("vxlan-gpe", 8, &[number("vni", 32, 24)]),
    item("geneve", 8, &[number("vni", 32, 24), number("protocol", 16, 16), number("optlen", 2, 6)]),
    item(
        "gre",
        4,
        &[
            number("protocol", 16, 16),
            number("c_rsvd0_ver", 0, 16),
            number("c_bit", 0, 1),
            number("k_bit", 2, 1),
            number("s_bit", 3, 1),
        ],
    ),
    item("gre_key", 4, &[number("value", 0, 32)]),
    item("nvgre", 8, &[number("tni", 32, 24)]),
    item(
        "mpls",
        4,
        &[number("label", 0, 20), number("tc", 20, 3), number("s", 23, 1), number("ttl", 24, 8)],
    ),
    item("gtp", 8, GTP),
    item("gtpc", 8, GTP),
    item("gtpu", 8, GTP),
    item("esp", 8, &[number("spi", 0, 32)]),
];

/// Kinds of packets over which RSS hashes: their names, and DPDK's bits (`RTE_ETH_RSS_*`).
pub(super) const RSS_TYPES: &[(&str, u64)] = &[
    ("none", 0),
    ("ipv4", 1 << 2),
    ("ipv4-frag", 1 << 3),
    ("ipv4-tcp", 1 << 4),
    ("ipv4-udp", 1 << 5),
    ("ipv4-sctp", 1 << 6),
    ("ipv4-other", 1 << 7),
    ("ipv6", 1 << 8),
    ("ipv6-frag", 1 << 9),
    ("ipv6-tcp", 1 << 10),
    ("ipv6-udp", 1 << 11),
    ("ipv6-sctp", 1 << 12),
    ("ipv6-other", 1 << 13),
    ("ip", RSS_IP),
    ("tcp", 1 << 4 | 1 << 10 | 1 << 16),
    ("udp", 1 << 5 | 1 << 11 | 1 << 17),
    ("sctp", 1 << 6 | 1 << 12),
];

/// `RTE_ETH_RSS_IP`: what an RSS action hashes over that says nothing.
pub(super) const RSS_IP: u64 = 1 << 2 | 1 << 3 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 13 | 1 << 15;

/// Hash functions of RSS, numbered as in DPDK.
pub(super) const RSS_FUNCTIONS: &[&str] =
    &["default", "toeplitz", "simple_xor", "symmetric_toeplitz"];
