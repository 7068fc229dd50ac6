//! The fields of a summary dump and their names.

use std::fmt;
use std::str::FromStr;

/// Declares [`Field`]: per field its name, and when a line is read, its turn:
/// what others depend on comes first.
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

            /// Its turn when a line is read; `None` if it is only written.
            pub(super) const fn order(self) -> Option<u16> {
                match self {
                    $(Field::$field => $order,)*
                }
            }
        }
    };
}

/// What is not in the packet.
const META: Option<u16> = Some(100);
/// Link header.
const LINK: Option<u16> = Some(200);
/// Network header, options and fragmentation first, lengths and sum last.
const NET_FRAG: Option<u16> = Some(298);
const NET_FIRST: Option<u16> = Some(299);
const NET: Option<u16> = Some(300);
const NET_LEN: Option<u16> = Some(301);
const NET_SUM: Option<u16> = Some(302);
/// Transport header, what says its kind first, options last.
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
    /// Nothing; stands for a field that is not understood.
    None "none" META;
    /// When the packet was seen.
    Timestamp "timestamp" META;
    /// As `timestamp`.
    Ntimestamp "ntimestamp" META;
    /// Seconds of the time.
    TsSec "ts_sec" META;
    /// Microseconds within the second.
    TsUsec "ts_usec" META;
    /// The time in microseconds.
    TsUsec1 "ts_usec1" META;
    /// When the first of several packets was seen.
    FirstTimestamp "first_timestamp" META;
    /// As `first_timestamp`.
    FirstNtimestamp "first_ntimestamp" META;
    /// How many packets it stands for.
    Count "count" META;
    /// The link it came from.
    Link "link" META;
    /// Its paint.
    Paint "paint" META;
    /// The link it came from, `>` for 0 and `<` for 1.
    Direction "direction" META;
    /// The aggregate it belongs to.
    Aggregate "aggregate" META;
    /// The worker that has it.
    Thread "thread" META;
    /// Length with the link header.
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
    /// `F` first fragment, `f` later one, `!` not to be fragmented, `.` none.
    IpFrag "ip_frag" NET_FRAG;
    /// Fragment offset in bytes, `+` if more follow, `!` not to be fragmented.
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
    /// How much of that is there.
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
    /// Options about selective acknowledgments.
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

/// Other names.
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
    /// Whether the field is read from the packet's headers or payload.
    pub(super) fn is_of_ip(self) -> bool {
        self.order().is_none_or(|turn| turn >= 298)
    }

    fn named(name: &str) -> Option<Field> {
        let synonym = SYNONYMS.iter().find(|entry| entry.0 == name).map(|entry| entry.1);
        synonym.or_else(|| Field::ALL.iter().copied().find(|field| field.name() == name))
    }
}

/// A name that no field has.
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

    /// Finds a field by a name of its; a blank stands for `_`, and `ip_` may
    /// be left out.
    fn from_str(name: &str) -> Result<Self, UnknownField> {
        let whole = name.replace(' ', "_");
        Field::named(&whole)
            .or_else(
                || if whole.contains('_') { None } else { Field::named(&format!("ip_{whole}")) },
            )
            .ok_or_else(|| UnknownField(name.to_string()))
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The fields that the words of `text` name; words may be in quotes.
pub fn fields(text: &str) -> Result<Vec<Field>, UnknownField> {
    super::quote::words(text)
        .map(|word| String::from_utf8_lossy(&super::quote::unquote(word)).parse())
        .collect()
}
