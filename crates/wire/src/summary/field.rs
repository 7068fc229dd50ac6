//! The fields of a summary dump and their names.

use std::fmt;
use std::str::FromStr;

/// Declares [`Field`]: the name of each field, and its rank in the order in which the fields of a
/// line are parsed, since some depend on others.
macro_rules! fields {
    ($($(#[$doc:meta])* $field:ident $name:literal $order:expr;)*) => {
        /// A field of a summary dump.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Field {
            $($(#[$doc])* $field,)*
        }

        impl Field {
            /// Every field.
            pub const ALL: &[Field] = &[$(Field::$field,)*];

            /// The name, as in a `!data` line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Field::$field => $name,)*
                }
            }

            /// Rank in the parsing order; `None` if the field is only written.
            pub(super) const fn parse_order(self) -> Option<u16> {
                match self {
                    $(Field::$field => $order,)*
                }
            }
        }
    };
}

/// Metadata.
const META: Option<u16> = Some(100);
/// Link header.
const LINK: Option<u16> = Some(200);
/// Network header: fragmentation and header length first, total length and checksum last.
const NET_FRAG: Option<u16> = Some(298);
const NET_FIRST: Option<u16> = Some(299);
const NET: Option<u16> = Some(300);
const NET_LEN: Option<u16> = Some(301);
const NET_SUM: Option<u16> = Some(302);
/// Transport header: header length first, options last.
const TRANSPORT_FIRST: Option<u16> = Some(399);
const TRANSPORT: Option<u16> = Some(400);
const TRANSPORT_1: Option<u16> = Some(401);
const TRANSPORT_2: Option<u16> = Some(402);
const TRANSPORT_3: Option<u16> = Some(403);
/// Payload.
const PAYLOAD: Option<u16> = Some(500);
const PAYLOAD_LEN: Option<u16> = Some(501);
const LAST: Option<u16> = Some(502);

fields! {
    /// No value; replaces an unknown field.
    None "none" META;
    /// Time of the packet.
    Timestamp "timestamp" META;
    /// As `timestamp`.
    Ntimestamp "ntimestamp" META;
    /// Seconds of the time.
    TsSec "ts_sec" META;
    /// Microseconds within the second.
    TsUsec "ts_usec" META;
    /// The time in microseconds.
    TsUsec1 "ts_usec1" META;
    /// Time of the first of several packets.
    FirstTimestamp "first_timestamp" META;
    /// As `first_timestamp`.
    FirstNtimestamp "first_ntimestamp" META;
    /// Number of packets that it represents.
    Count "count" META;
    /// Number of the link of its arrival.
    Link "link" META;
    /// The packet's paint.
    Paint "paint" META;
    /// Direction: `>` for link 0 and `<` for link 1.
    Direction "direction" META;
    /// Number of the packet's aggregate.
    Aggregate "aggregate" META;
    /// Number of the worker that processes it.
    Thread "thread" META;
    /// Length including the link header.
    WireLen "wire_len" META;
    /// Ethernet source.
    EthSrc "eth_src" LINK;
    /// Ethernet destination.
    EthDst "eth_dst" LINK;
    /// EtherType, four hexadecimal digits.
    EthType "eth_type" LINK;
    /// Source address.
    IpSrc "ip_src" NET;
    /// Destination address.
    IpDst "ip_dst" NET;
    /// Type of service.
    IpTos "ip_tos" NET;
    /// Differentiated services code point.
    IpDscp "ip_dscp" NET;
    /// Congestion notification: `no`, `ect1`, `ect2` or `ce`.
    IpEcn "ip_ecn" NET;
    /// Time to live.
    IpTtl "ip_ttl" NET;
    /// `F` first fragment, `f` later fragment, `!` DF flag, `.` none of these.
    IpFrag "ip_frag" NET_FRAG;
    /// Fragment offset in bytes, `+` for the MF flag, `!` for the DF flag.
    IpFragoff "ip_fragoff" NET_FIRST;
    /// Identification.
    IpId "ip_id" NET;
    /// Header checksum.
    IpSum "ip_sum" NET_SUM;
    /// Protocol: `T`, `U`, `I` or a number.
    IpProto "ip_proto" NET;
    /// Header length in bytes.
    IpHl "ip_hl" NET_FIRST;
    /// Total length.
    IpLen "ip_len" NET_LEN;
    /// Captured part of the total length.
    IpCaptureLen "ip_capture_len" LAST;
    /// Options.
    IpOpt "ip_opt" NET;
    /// Source port.
    Sport "sport" TRANSPORT;
    /// Destination port.
    Dport "dport" TRANSPORT;
    /// Sequence number.
    TcpSeq "tcp_seq" TRANSPORT;
    /// Acknowledgment number.
    TcpAck "tcp_ack" TRANSPORT;
    /// Header length in bytes.
    TcpOff "tcp_off" TRANSPORT_FIRST;
    /// Flags, as letters of `FSRPAUECN`, `.` if none.
    TcpFlags "tcp_flags" TRANSPORT;
    /// Window.
    TcpWindow "tcp_window" TRANSPORT;
    /// Urgent pointer.
    TcpUrp "tcp_urp" TRANSPORT;
    /// Options without padding.
    TcpOpt "tcp_opt" TRANSPORT_3;
    /// Options without padding and timestamps.
    TcpNtopt "tcp_ntopt" TRANSPORT_2;
    /// Options of selective acknowledgments.
    TcpSack "tcp_sack" TRANSPORT_1;
    /// Length field of UDP.
    UdpLen "udp_len" TRANSPORT;
    /// ICMP type.
    IcmpType "icmp_type" TRANSPORT;
    /// ICMP code.
    IcmpCode "icmp_code" TRANSPORT_1;
    /// ICMP type by name.
    IcmpTypeName "icmp_type_name" TRANSPORT;
    /// ICMP code by name.
    IcmpCodeName "icmp_code_name" TRANSPORT_1;
    /// Identifier of an ICMP query.
    IcmpFlowid "icmp_flowid" TRANSPORT_2;
    /// Sequence number of an ICMP query.
    IcmpSeq "icmp_seq" TRANSPORT_2;
    /// MTU of "fragmentation needed".
    IcmpNextmtu "icmp_nextmtu" TRANSPORT_2;
    /// Length of the payload.
    PayloadLen "payload_len" PAYLOAD_LEN;
    /// The payload in quotes.
    Payload "payload" PAYLOAD;
    /// MD5 of the payload, in 22 letters.
    PayloadMd5 "payload_md5" None;
    /// MD5 of the payload, in hexadecimal.
    PayloadMd5Hex "payload_md5_hex" None;
}

/// Synonyms of field names.
const SYNONYMS: [(&str, Field); 20] = [
    ("utimestamp", Field::Timestamp),
    ("ts", Field::Timestamp),
    ("sec", Field::TsSec),
    ("usec", Field::TsUsec),
    ("usec1", Field::TsUsec1),
    ("first_utimestamp", Field::FirstTimestamp),
    ("first_ts", Field::FirstTimestamp),
    ("pkt_count", Field::Count),
    ("packet_count", Field::Count),
    ("agg", Field::Aggregate),
    ("wire_length", Field::WireLen),
    ("ether_src", Field::EthSrc),
    ("ether_dst", Field::EthDst),
    ("ether_type", Field::EthType),
    ("length", Field::IpLen),
    ("ip_p", Field::IpProto),
    ("tcp_seqno", Field::TcpSeq),
    ("tcp_ackno", Field::TcpAck),
    ("tcp_win", Field::TcpWindow),
    ("payload_length", Field::PayloadLen),
];

impl Field {
    /// Whether the value comes from the IP packet: network and transport header, or payload.
    pub(super) fn is_in_ip(self) -> bool {
        self.parse_order().is_none_or(|order| order >= 298)
    }

    /// The field with this name or synonym.
    fn by_name(name: &str) -> Option<Field> {
        let synonym = SYNONYMS.iter().find(|entry| entry.0 == name).map(|entry| entry.1);
        synonym.or_else(|| Field::ALL.iter().copied().find(|field| field.name() == name))
    }
}

/// Error: no field has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField(pub String);

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown content type '{}'", self.0)
    }
}

impl std::error::Error for UnknownField {}

impl FromStr for Field {
    type Err = UnknownField;

    /// Parses a field name; blanks count as `_`, and the prefix `ip_` is optional.
    fn from_str(name: &str) -> Result<Self, UnknownField> {
        let whole = name.replace(' ', "_");
        Field::by_name(&whole)
            .or_else(|| {
                if whole.contains('_') { None } else { Field::by_name(&format!("ip_{whole}")) }
            })
            .ok_or_else(|| UnknownField(name.to_string()))
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Parses a list of field names, which may be in quotes.
pub fn fields(text: &str) -> Result<Vec<Field>, UnknownField> {
    super::quote::words(text)
        .map(|word| String::from_utf8_lossy(&super::quote::unquote(word)).parse())
        .collect()
}
