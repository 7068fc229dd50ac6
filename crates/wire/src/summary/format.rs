//! Writes packets as lines of a summary dump.

use super::binary::BINARY;
use super::quote::quote;
use super::view::{BadReport, MissingHeader, PacketView};
use super::{Field, Meta, Packet, VERSION};
use crate::options::{TcpOptionFilter, print_ip, print_tcp};
use crate::tcp::flag;
use crate::{Icmp, Ipv4Header, Tcp, Udp, icmp, ip_proto, names};
use std::fmt::Write;

/// The header lines of a dump of these fields, with line ends; records follow if `binary`, and
/// lines otherwise.
pub fn header(fields: &[Field], creator: Option<&str>, binary: bool) -> String {
    let mut out = format!("!IPSummaryDump {}.{}\n", VERSION.0, VERSION.1);
    if let Some(creator) = creator {
        out.push_str("!creator ");
        quote(creator.as_bytes(), &mut out);
        out.push('\n');
    }
    out.push_str("!data");
    for &field in fields {
        // In text both have the same format.
        let in_text = field == Field::Ntimestamp && !binary;
        let field = if in_text { Field::Timestamp } else { field };
        let _ = write!(out, " {field}");
    }
    out.push('\n');
    if binary {
        out.push_str(BINARY);
        out.push('\n');
    }
    out
}

/// Writes packets as lines, or records, of the same fields.
///
/// ```
/// use castanet_wire::sketch;
/// use castanet_wire::summary::{Meta, Packet, Writer, fields};
///
/// let writer = Writer::new(fields("ip_src sport ip_dst dport proto tcp_flags")?);
/// let bytes = sketch::build("1.0.0.1:53 > 2.0.0.2:99 udp")?.bytes;
/// let mut line = String::new();
/// writer.line(&Packet::from_network(&bytes), &Meta::default(), &mut line, None);
/// assert_eq!(line, "1.0.0.1 53 2.0.0.2 99 U -");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Writer {
    fields: Vec<Field>,
    /// Whether any field needs the IP header.
    needs_ip: bool,
    /// Whether a truncated IP packet counts as bad.
    pub careful: bool,
    /// Whether lengths include the metadata's extra length.
    pub extra_length: bool,
}

impl Writer {
    /// Makes a writer of these fields.
    pub fn new(fields: Vec<Field>) -> Self {
        let needs_ip = fields.iter().any(|field| field.is_in_ip());
        Writer { fields, needs_ip, careful: true, extra_length: true }
    }

    /// The fields written.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Appends the line of a packet, without a line end. If the packet is bad,
    /// appends the `!bad` line that precedes it to `bad`.
    pub fn line(
        &self,
        packet: &Packet<'_>,
        meta: &Meta,
        out: &mut String,
        bad: Option<&mut String>,
    ) {
        let mut bad = BadReport(bad);
        let view = self.view(packet, meta, &mut bad);
        for (i, &field) in self.fields.iter().enumerate() {
            if i > 0 {
                out.push(' ');
            }
            if !self.word(field, &view, meta, false, out, &mut bad) {
                out.push('-');
            }
        }
    }

    /// A view of a packet, with its headers if the fields need them.
    pub(super) fn view<'a>(
        &self,
        packet: &Packet<'a>,
        meta: &Meta,
        bad: &mut BadReport<'_>,
    ) -> PacketView<'a> {
        match self.needs_ip {
            true => PacketView::new(*packet, meta, self.careful, bad),
            false => PacketView::without_headers(*packet, meta),
        }
    }

    /// Appends the word of a field, options with their padding if `padding`; returns `false` if the
    /// packet does not have the field.
    pub(super) fn word(
        &self,
        field: Field,
        view: &PacketView<'_>,
        meta: &Meta,
        padding: bool,
        out: &mut String,
        bad: &mut BadReport<'_>,
    ) -> bool {
        let result = match field.parse_order().unwrap_or(500) {
            100 => meta_field(field, view, meta, out),
            200 => link_field(field, view, out),
            298..=302 => self.ip_field(field, view, padding, out),
            399..=403 => transport_field(field, view, padding, out),
            _ => self.payload_field(field, view, out),
        };
        let Err((missing, len)) = result else { return true };
        if let Some(missing) = missing {
            view.report_missing(missing, len, bad);
        }
        false
    }

    fn ip_field(
        &self,
        field: Field,
        view: &PacketView<'_>,
        padding: bool,
        out: &mut String,
    ) -> FieldResult {
        let extra = if self.extra_length { view.extra_length as usize } else { 0 };
        let needed = match field {
            Field::IpLen => {
                let len = if view.ip.is_some() { view.total_len } else { view.data.len() };
                return put(out, len + extra);
            }
            Field::IpOpt => return ip_options(view, padding, out),
            Field::IpSrc => Ipv4Header::SRC + 4,
            Field::IpDst => Ipv4Header::DST + 4,
            Field::IpTos | Field::IpDscp | Field::IpEcn => Ipv4Header::TOS + 1,
            Field::IpTtl => Ipv4Header::TTL + 1,
            Field::IpFrag | Field::IpFragoff => Ipv4Header::FRAGMENT_WORD + 2,
            Field::IpId => Ipv4Header::ID + 2,
            Field::IpSum => Ipv4Header::CHECKSUM + 2,
            Field::IpProto => Ipv4Header::PROTOCOL + 1,
            _ => Ipv4Header::VERSION_IHL + 1,
        };
        let present = view.header(needed).ok_or((Some(MissingHeader::Ip), needed))?;
        let mut bytes = [0; Ipv4Header::LEN];
        bytes[..needed].copy_from_slice(present);
        let ip = Ipv4Header(bytes);
        match field {
            Field::IpSrc => put(out, ip.src()),
            Field::IpDst => put(out, ip.dst()),
            Field::IpTos => put(out, ip.tos()),
            Field::IpDscp => put(out, ip.dscp()),
            Field::IpEcn => put(out, ["no", "ect1", "ect2", "ce"][usize::from(ip.ecn())]),
            Field::IpTtl => put(out, ip.ttl()),
            Field::IpFrag => put(
                out,
                match (ip.is_fragment(), ip.is_first_fragment(), ip.dont_fragment()) {
                    (true, true, _) => 'F',
                    (true, false, _) => 'f',
                    (false, _, true) => '!',
                    (false, _, false) => '.',
                },
            ),
            Field::IpFragoff => {
                let more = if ip.more_fragments() { "+" } else { "" };
                let dont = if ip.dont_fragment() { "!" } else { "" };
                put(out, format_args!("{}{more}{dont}", ip.fragment_offset()))
            }
            Field::IpId => put(out, ip.id()),
            Field::IpSum => put(out, ip.checksum()),
            Field::IpProto => match ip.protocol() {
                ip_proto::TCP => put(out, 'T'),
                ip_proto::UDP => put(out, 'U'),
                ip_proto::ICMP => put(out, 'I'),
                protocol => put(out, protocol),
            },
            _ => put(out, ip.header_len()),
        }
    }

    fn payload_field(&self, field: Field, view: &PacketView<'_>, out: &mut String) -> FieldResult {
        let (at, len) = payload(view);
        let present = view.data.get(at..).unwrap_or_default();
        let present = present.get(..len).unwrap_or(present);
        match field {
            Field::IpCaptureLen => {
                let len = view.ip.map_or(view.data.len(), |ip| ip.len().min(view.total_len));
                return put(out, len);
            }
            Field::PayloadLen => {
                let with_extra = view.ip.is_none() || self.extra_length;
                return put(out, len + if with_extra { view.extra_length as usize } else { 0 });
            }
            _ if len > 0 && at >= view.packet.data.len() => return Err((None, 0)),
            Field::Payload => quote(present, out),
            Field::PayloadMd5Hex => return put(out, format_args!("{:x}", md5::compute(present))),
            _ => md5_letters(&md5::compute(present).0, out),
        }
        Ok(())
    }
}

/// Success if a field was present. Otherwise the missing header, if its absence is worth a report,
/// and the number of its bytes that the field needs.
type FieldResult = Result<(), (Option<MissingHeader>, usize)>;

/// Appends a value.
fn put(out: &mut String, value: impl std::fmt::Display) -> FieldResult {
    let _ = write!(out, "{value}");
    Ok(())
}

fn meta_field(field: Field, view: &PacketView<'_>, meta: &Meta, out: &mut String) -> FieldResult {
    let time = meta.timestamp;
    match field {
        Field::Timestamp | Field::Ntimestamp => put(out, time),
        Field::TsSec => put(out, time.secs()),
        Field::TsUsec => put(out, time.subsec_micros()),
        Field::TsUsec1 => put(out, time.0.div_euclid(1000)),
        Field::FirstTimestamp | Field::FirstNtimestamp => put(out, meta.first_timestamp),
        Field::Count => put(out, u64::from(meta.extra_packets) + 1),
        Field::Link | Field::Paint => put(out, meta.paint),
        Field::Direction => match meta.paint {
            0 => put(out, '>'),
            1 => put(out, '<'),
            paint => put(out, paint),
        },
        Field::Aggregate => put(out, meta.aggregate),
        Field::Thread => put(out, meta.thread),
        Field::WireLen => put(out, view.packet.data.len()),
        _ => Err((None, 0)),
    }
}

fn link_field(field: Field, view: &PacketView<'_>, out: &mut String) -> FieldResult {
    let header = view.ethernet().ok_or((Some(MissingHeader::Ethernet), 0))?;
    match field {
        Field::EthSrc => put(out, header.src()),
        Field::EthDst => put(out, header.dst()),
        _ => put(out, format_args!("{:04X}", header.ether_type())),
    }
}

fn ip_options(view: &PacketView<'_>, padding: bool, out: &mut String) -> FieldResult {
    let needed = view.header_len.max(Ipv4Header::LEN);
    if view.ip.is_some() && needed == Ipv4Header::LEN {
        return put(out, '.');
    }
    let header = view.header(needed).ok_or((Some(MissingHeader::Ip), needed))?;
    print_ip(&header[Ipv4Header::LEN..], padding, out);
    Ok(())
}

fn transport_field(
    field: Field,
    view: &PacketView<'_>,
    padding: bool,
    out: &mut String,
) -> FieldResult {
    match field {
        Field::Sport | Field::Dport => {
            let end = if field == Field::Sport { 2 } else { 4 };
            let ports = view.ports().and_then(|bytes| bytes.get(end - 2..end));
            let port = ports.ok_or((Some(MissingHeader::Ports), end))?;
            put(out, u16::from_be_bytes([port[0], port[1]]))
        }
        Field::UdpLen => {
            let (bytes, _) = transport(view, ip_proto::UDP, Udp::LENGTH + 2)?;
            put(out, Udp(bytes).length())
        }
        Field::IcmpType | Field::IcmpTypeName | Field::IcmpCode | Field::IcmpCodeName => {
            icmp_kind(field, view, out)
        }
        Field::IcmpFlowid | Field::IcmpSeq | Field::IcmpNextmtu => icmp_rest(field, view, out),
        Field::TcpOpt | Field::TcpNtopt | Field::TcpSack => tcp_options(field, view, padding, out),
        _ => tcp_field(field, view, out),
    }
}

/// A transport header of which at least `needed` bytes must be present (missing
/// bytes are zero), and the number of bytes from its start to the packet's end.
fn transport<const N: usize>(
    view: &PacketView<'_>,
    protocol: u8,
    needed: usize,
) -> Result<([u8; N], usize), (Option<MissingHeader>, usize)> {
    let present = view.transport(protocol).filter(|bytes| bytes.len() >= needed);
    let present = present.ok_or((Some(MissingHeader::Protocol(protocol)), needed))?;
    let mut bytes = [0; N];
    let len = present.len().min(N);
    bytes[..len].copy_from_slice(&present[..len]);
    Ok((bytes, present.len()))
}

fn tcp_field(field: Field, view: &PacketView<'_>, out: &mut String) -> FieldResult {
    let needed = match field {
        Field::TcpSeq => Tcp::SEQ + 4,
        Field::TcpAck => Tcp::ACK + 4,
        Field::TcpOff => Tcp::OFFSET_BYTE + 1,
        Field::TcpFlags => Tcp::FLAGS + 1,
        Field::TcpWindow => Tcp::WINDOW + 2,
        _ => Tcp::URGENT + 2,
    };
    let tcp = Tcp(transport(view, ip_proto::TCP, needed)?.0);
    match field {
        Field::TcpSeq => put(out, tcp.seq()),
        Field::TcpAck => put(out, tcp.ack()),
        Field::TcpOff => put(out, tcp.header_len()),
        Field::TcpFlags => {
            print_flags(tcp.flags(), tcp.reserved() & 1 != 0, out);
            Ok(())
        }
        Field::TcpWindow => put(out, tcp.window()),
        _ => put(out, tcp.urgent()),
    }
}

/// The letters of TCP's flags, from the lowest bit; the ninth is the nonce sum
/// (RFC 3540).
pub(super) const FLAG_LETTERS: &str = "FSRPAUECN";

fn print_flags(flags: u8, nonce: bool, out: &mut String) {
    let bits = u16::from(flags) | u16::from(nonce) << 8;
    if bits == 0 {
        out.push('.');
    }
    debug_assert_eq!(FLAG_LETTERS.find('A'), Some(flag::ACK.trailing_zeros() as usize));
    out.extend(
        FLAG_LETTERS.chars().enumerate().filter(|(i, _)| bits >> i & 1 != 0).map(|(_, c)| c),
    );
}

fn tcp_options(
    field: Field,
    view: &PacketView<'_>,
    padding: bool,
    out: &mut String,
) -> FieldResult {
    /// The options of most segments: two NOPs and timestamps.
    const TIMESTAMPS_ONLY: [u8; 4] = [1, 1, 8, 10];
    let bytes = view.transport(ip_proto::TCP).unwrap_or_default();
    let missing = (Some(MissingHeader::Protocol(ip_proto::TCP)), bytes.len() + 1);
    let offset = bytes.get(Tcp::OFFSET_BYTE).ok_or(missing)?;
    let len = usize::from(offset >> 4) * 4;
    let timestamps_only =
        len == Tcp::LEN + 12 && bytes.get(Tcp::LEN..Tcp::LEN + 4) == Some(&TIMESTAMPS_ONLY);
    if len <= Tcp::LEN || timestamps_only && field != Field::TcpOpt {
        return put(out, '.');
    }
    let list = bytes.get(Tcp::LEN..len).ok_or(missing)?;
    let filter = match field {
        Field::TcpOpt if padding => TcpOptionFilter::All,
        Field::TcpOpt => TcpOptionFilter::NoPadding,
        Field::TcpNtopt => TcpOptionFilter::NoTimestamps,
        _ => TcpOptionFilter::Sack,
    };
    print_tcp(list, filter, out);
    Ok(())
}

fn icmp_kind(field: Field, view: &PacketView<'_>, out: &mut String) -> FieldResult {
    let of_type = matches!(field, Field::IcmpType | Field::IcmpTypeName);
    let needed = if of_type { Icmp::KIND + 1 } else { Icmp::CODE + 1 };
    let icmp = Icmp(transport(view, ip_proto::ICMP, needed)?.0);
    let (number, name) = match field {
        Field::IcmpType => (icmp.kind(), None),
        Field::IcmpTypeName => (icmp.kind(), names::icmp_type_name(icmp.kind())),
        Field::IcmpCode => (icmp.code(), None),
        _ => (icmp.code(), names::icmp_code_name(icmp.kind(), icmp.code())),
    };
    match name {
        Some(name) => put(out, name),
        None => put(out, number),
    }
}

fn icmp_rest(field: Field, view: &PacketView<'_>, out: &mut String) -> FieldResult {
    let (bytes, len) =
        transport(view, ip_proto::ICMP, if field == Field::IcmpNextmtu { 2 } else { 1 })?;
    let icmp = Icmp(bytes);
    let applies = match field {
        Field::IcmpNextmtu => is_need_fragment(icmp.kind(), icmp.code()),
        _ => has_flow(icmp.kind()),
    };
    let needed = if field == Field::IcmpFlowid { Icmp::ID + 2 } else { Icmp::SEQ + 2 };
    if !applies {
        return Err((None, 0));
    } else if len < needed {
        return Err((Some(MissingHeader::Protocol(ip_proto::ICMP)), needed));
    }
    put(out, if field == Field::IcmpFlowid { icmp.id() } else { icmp.seq() })
}

/// Whether ICMP messages of this type have an identifier and a sequence number.
pub(super) fn has_flow(kind: u8) -> bool {
    !matches!(kind, icmp::MASK_REQUEST | icmp::MASK_REPLY) && icmp::is_query(kind)
}

/// Whether an ICMP message is "fragmentation needed", which has an MTU.
pub(super) fn is_need_fragment(kind: u8, code: u8) -> bool {
    (kind, code) == (icmp::UNREACHABLE, 4)
}

/// Offset of the payload, perhaps beyond the packet's end, and its length.
fn payload(view: &PacketView<'_>) -> (usize, usize) {
    if view.ip.is_none() {
        return (0, view.data.len());
    }
    let first = view.is_first_fragment();
    let head = match view.protocol() {
        Some(ip_proto::TCP) if first => {
            let offset = view.after_ip().get(Tcp::OFFSET_BYTE).map_or(0, |byte| byte >> 4);
            (usize::from(offset) * 4).max(Tcp::LEN)
        }
        Some(ip_proto::UDP | ip_proto::UDP_LITE) if first => Udp::LEN,
        _ => 0,
    };
    let head = view.header_len + head;
    (view.packet.network.unwrap_or(0) + head, view.total_len.saturating_sub(head))
}

/// Appends a digest in letters of six bits each, the lowest first.
fn md5_letters(digest: &[u8; 16], out: &mut String) {
    const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@";
    let mut bits = u128::from_le_bytes(*digest);
    for _ in 0..128usize.div_ceil(6) {
        out.push(LETTERS[(bits & 63) as usize].into());
        bits >>= 6;
    }
}
