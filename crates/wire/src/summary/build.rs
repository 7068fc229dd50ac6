//! Builds a packet field by field, and adds the headers that the fields need.

use super::format::{has_flow, is_need_fragment};
use super::parse::{Defaults, ParsedPacket};
use super::quote::unquote;
use super::value::{IpValue, parse_flags, set_ip};
use super::{Field, Meta};
use crate::checksum::Sum;
use crate::options::{TcpOptionFilter, c_number, parse_tcp};
use crate::timestamp::Timestamp;
use crate::{Ethernet, Icmp, Ipv4Header, MacAddr, Tcp, Udp, ether_type, icmp, ip_proto, names};

/// The default TTL.
const DEFAULT_TTL: u8 = 100;
/// Length of a DCCP header without sequence numbers.
const DCCP_LEN: usize = 12;
/// Length of an ICMP timestamp message.
const ICMP_TIMESTAMP_LEN: usize = 20;

/// Builds a packet from the fields of a line.
pub(super) struct PacketBuilder<'d> {
    defaults: &'d Defaults,
    pub(super) meta: Meta,
    link: Option<Ethernet>,
    /// The packet from the network header on.
    net: Vec<u8>,
    is_ip: bool,
    /// Offset of the transport header in `net`.
    transport: usize,
    /// Length of the packet with its link header, as the line gives it; 0 if unknown.
    wire_len: usize,
    /// Whether the line has given the ICMP type.
    icmp_type: bool,
    /// Whether the line has given the ICMP code.
    icmp_code: bool,
    /// Whether the line has given the IP header length.
    ip_hl: bool,
    /// Whether the line has given the TCP header length.
    tcp_hl: bool,
}

impl<'d> PacketBuilder<'d> {
    pub(super) fn new(defaults: &'d Defaults) -> Self {
        let aggregate = defaults.aggregate.unwrap_or(0);
        PacketBuilder {
            defaults,
            meta: Meta { aggregate, ..Meta::default() },
            link: None,
            net: Vec::new(),
            is_ip: true,
            transport: 0,
            wire_len: 0,
            icmp_type: false,
            icmp_code: false,
            ip_hl: false,
            tcp_hl: false,
        }
    }

    /// Length of the link header.
    fn link_len(&self) -> usize {
        if self.link.is_some() { Ethernet::LEN } else { 0 }
    }

    /// Sets `field` to the value of `word`; `None` if `word` is not a value of it.
    pub(super) fn field(&mut self, field: Field, word: &str) -> Option<()> {
        match field.parse_order()? {
            100 => self.meta_field(field, word),
            200 => self.link_field(field, word),
            298..=302 => self.ip_field(field, word),
            399..=403 => self.transport_field(field, word),
            _ => self.payload_field(field, word),
        }
    }

    fn meta_field(&mut self, field: Field, word: &str) -> Option<()> {
        let meta = &mut self.meta;
        let number = c_number(word, u32::MAX);
        match field {
            Field::Timestamp | Field::Ntimestamp => meta.timestamp = word.parse().ok()?,
            Field::FirstTimestamp | Field::FirstNtimestamp => {
                meta.first_timestamp = word.parse().ok()?;
            }
            Field::TsSec => {
                let nanos = meta.timestamp.subsec_nanos();
                meta.timestamp = Timestamp::new(number?.into(), nanos.into());
            }
            Field::TsUsec => {
                let nanos = u64::from(number.filter(|&n| n < 1_000_000)?) * 1000;
                let secs = u64::try_from(meta.timestamp.secs()).unwrap_or(0);
                meta.timestamp = Timestamp::new(secs, nanos);
            }
            Field::TsUsec1 => {
                meta.timestamp = Timestamp(word.parse::<i64>().ok()?.saturating_mul(1000));
            }
            Field::Count => meta.extra_packets = number?.saturating_sub(1),
            Field::Link | Field::Paint | Field::Direction => {
                meta.paint = match word {
                    ">" => 0,
                    "<" => 1,
                    word => c_number(word, 255)? as u8,
                };
            }
            Field::Aggregate => meta.aggregate = number?,
            Field::Thread => meta.thread = number?,
            Field::WireLen => self.wire_len = number? as usize,
            // Ignored, but valid.
            _ => {}
        }
        Some(())
    }

    fn link_field(&mut self, field: Field, word: &str) -> Option<()> {
        let none = Ethernet::new(MacAddr::ZERO, MacAddr::ZERO, ether_type::IPV4);
        let mut link = self.link.unwrap_or(none);
        match field {
            Field::EthSrc => link.set_src(word.parse().ok()?),
            Field::EthDst => link.set_dst(word.parse().ok()?),
            _ => {
                let kind = u16::from_str_radix(word.trim_start_matches("0x"), 16).ok()?;
                link.set_ether_type(kind);
                self.is_ip &= matches!(kind, ether_type::IPV4 | ether_type::IPV6);
            }
        }
        self.link = Some(link);
        Some(())
    }

    /// Adds an IP header, if there is none yet; returns `false` if the packet is not
    /// IP, or of another protocol than `wanted`.
    fn make_ip(&mut self, wanted: Option<u8>) -> bool {
        if !self.is_ip {
            return false;
        }
        if self.net.len() < Ipv4Header::LEN {
            let flow = self.defaults.flow.unwrap_or_default();
            let mut ip = Ipv4Header([0; Ipv4Header::LEN]);
            ip.set_header_len(Ipv4Header::LEN);
            ip.set_ttl(DEFAULT_TTL);
            ip.set_protocol(self.defaults.protocol);
            ip.set_src(flow.src);
            ip.set_dst(flow.dst);
            self.net = ip.0.to_vec();
            self.transport = Ipv4Header::LEN;
        }
        let protocol = self.protocol();
        wanted.is_none_or(|wanted| protocol == 0 || protocol == wanted)
    }

    fn ip(&self) -> Option<&Ipv4Header> {
        Ipv4Header::from_prefix(&self.net).map(|(ip, _)| ip)
    }

    fn ip_mut(&mut self) -> Option<&mut Ipv4Header> {
        Ipv4Header::from_prefix_mut(&mut self.net).map(|(ip, _)| ip)
    }

    fn protocol(&self) -> u8 {
        self.ip().map_or(0, Ipv4Header::protocol)
    }

    /// Extends the packet with zeros to at least `len` bytes from the network header.
    fn extend_to(&mut self, len: usize) {
        if self.net.len() < len {
            self.net.resize(len, 0);
        }
    }

    /// Adds the transport header of the packet's protocol, up to the packet's
    /// length; returns `false` if the packet is a fragment other than the first.
    fn make_transport(&mut self) -> bool {
        let Some(ip) = self.ip().filter(|ip| ip.is_first_fragment()) else { return false };
        let whole = match ip.protocol() {
            ip_proto::TCP => Tcp::LEN,
            ip_proto::UDP | ip_proto::UDP_LITE => Udp::LEN,
            ip_proto::DCCP => DCCP_LEN,
            ip_proto::ICMP => Icmp::LEN,
            _ => return true,
        };
        let protocol = ip.protocol();
        let present = self.net.len().saturating_sub(self.transport);
        if present >= Udp::LEN {
            return true;
        }
        let room = self.wire_len.saturating_sub(self.link_len() + self.transport);
        let len = if self.wire_len > 0 { whole.min(room) } else { whole };
        if present < len {
            self.extend_to(self.transport + len.max(4));
            let header = &mut self.net[self.transport..];
            if protocol == ip_proto::TCP && len > Tcp::OFFSET_BYTE {
                header[Tcp::OFFSET_BYTE] = ((Tcp::LEN / 4) as u8) << 4;
            }
            if let Some(flow) = self.defaults.flow {
                header[..2].copy_from_slice(&flow.sport.to_be_bytes());
                header[2..4].copy_from_slice(&flow.dport.to_be_bytes());
            }
            self.net.truncate(self.transport + len);
        }
        true
    }

    fn ip_field(&mut self, field: Field, word: &str) -> Option<()> {
        let value = IpValue::parse(field, word, self.defaults.minor)?;
        if !self.make_ip(None) {
            return Some(());
        }
        let offset = self.link_len();
        match (field, value) {
            (Field::IpLen, IpValue::Number(len)) => self.wire_len = offset + len as usize,
            (Field::IpHl, IpValue::Number(len)) => self.set_header_len(len as usize),
            (Field::IpOpt, IpValue::Options(list)) => {
                self.ip_hl = true;
                if !list.is_empty() {
                    self.set_header_len((Ipv4Header::LEN + list.len()).max(self.transport));
                    self.net[Ipv4Header::LEN..Ipv4Header::LEN + list.len()].copy_from_slice(&list);
                }
            }
            (field, value) => set_ip(self.ip_mut()?, field, value),
        }
        Some(())
    }

    /// Sets the IP header length, and extends the header to at least `len` bytes.
    fn set_header_len(&mut self, len: usize) {
        self.ip_hl = true;
        let len = len.next_multiple_of(4).min(60);
        let more = len.saturating_sub(self.transport);
        let at = self.transport;
        self.net.splice(at..at, std::iter::repeat_n(0, more));
        self.transport += more;
        if let Some(ip) = self.ip_mut() {
            ip.set_header_len(len);
        }
    }

    fn transport_field(&mut self, field: Field, word: &str) -> Option<()> {
        match field {
            Field::Sport | Field::Dport => {
                let port = c_number(word, 0xffff)? as u16;
                let ready = self.make_ip(None) && self.make_transport();
                let with_ports = matches!(
                    self.protocol(),
                    0 | ip_proto::TCP | ip_proto::UDP | ip_proto::DCCP | ip_proto::UDP_LITE
                );
                let at = self.transport + if field == Field::Sport { 0 } else { 2 };
                if ready && with_ports {
                    self.extend_to(at + 2);
                    self.net[at..at + 2].copy_from_slice(&port.to_be_bytes());
                }
            }
            Field::UdpLen => {
                let len = c_number(word, u32::MAX)? as u16;
                let ready = self.make_ip(None) && self.make_transport();
                if ready && matches!(self.protocol(), 0 | ip_proto::UDP | ip_proto::UDP_LITE) {
                    self.extend_to(self.transport + Udp::LEN);
                    let (udp, _) = Udp::from_prefix_mut(&mut self.net[self.transport..])?;
                    udp.set_length(len);
                }
            }
            Field::TcpOpt | Field::TcpNtopt | Field::TcpSack => {
                return self.tcp_options(field, word);
            }
            field if field.name().starts_with("icmp") => return self.icmp_field(field, word),
            _ => return self.tcp_field(field, word),
        }
        Some(())
    }

    /// The TCP header, which is added if needed; `None` if the packet cannot have one.
    fn tcp(&mut self) -> Option<&mut Tcp> {
        if !self.make_ip(Some(ip_proto::TCP)) || !self.make_transport() {
            return None;
        }
        self.extend_to(self.transport + Tcp::LEN);
        Tcp::from_prefix_mut(&mut self.net[self.transport..]).map(|(tcp, _)| tcp)
    }

    fn tcp_field(&mut self, field: Field, word: &str) -> Option<()> {
        let max = if matches!(field, Field::TcpSeq | Field::TcpAck) { u32::MAX } else { 0xffff };
        let number = match field {
            Field::TcpFlags => parse_flags(word)?,
            Field::TcpOff => c_number(word, 255)?,
            _ => c_number(word, max)?,
        };
        let Some(tcp) = self.tcp() else { return Some(()) };
        match field {
            Field::TcpSeq => tcp.set_seq(number),
            Field::TcpAck => tcp.set_ack(number),
            Field::TcpFlags => {
                tcp.set_flags(number as u8);
                tcp.set_reserved((number >> 8) as u8);
            }
            Field::TcpWindow => tcp.set_window(number as u16),
            Field::TcpUrp => tcp.set_urgent(number as u16),
            _ => self.set_tcp_len(number as usize),
        }
        Some(())
    }

    /// Sets the TCP header length, and extends the header to at least `len` bytes.
    fn set_tcp_len(&mut self, len: usize) {
        let len = len.next_multiple_of(4).min(60);
        let at = self.transport + Tcp::LEN;
        let Some(tcp) = self.tcp() else { return };
        let more = len.saturating_sub(tcp.header_len().max(Tcp::LEN));
        tcp.set_header_len(len);
        self.net.splice(at..at, std::iter::repeat_n(0, more));
    }

    fn tcp_options(&mut self, field: Field, word: &str) -> Option<()> {
        let filter = match field {
            Field::TcpOpt => TcpOptionFilter::All,
            Field::TcpNtopt => TcpOptionFilter::NoTimestamps,
            _ => TcpOptionFilter::Sack,
        };
        let list = parse_tcp(word, filter)?;
        if self.tcp().is_none() {
            return Some(());
        }
        self.tcp_hl = true;
        if !list.is_empty() {
            let current = self.tcp().map_or(0, |tcp| tcp.header_len());
            self.set_tcp_len((Tcp::LEN + list.len()).max(current));
            let at = self.transport + Tcp::LEN;
            self.net[at..at + list.len()].copy_from_slice(&list);
        }
        Some(())
    }

    fn icmp_field(&mut self, field: Field, word: &str) -> Option<()> {
        let known = self.icmp_type.then(|| self.net.get(self.transport).copied()).flatten();
        let number = match field {
            Field::IcmpType | Field::IcmpTypeName => names::icmp_type_number(word)?.into(),
            Field::IcmpCode | Field::IcmpCodeName => match known {
                Some(kind) => names::icmp_code_number(kind, word)?.into(),
                None => c_number(word, 255)?,
            },
            _ => c_number(word, 0xffff)?,
        };
        if !self.make_ip(Some(ip_proto::ICMP)) || !self.make_transport() {
            return Some(());
        }
        self.extend_to(self.transport + Icmp::LEN);
        let (with_type, with_code) = (self.icmp_type, self.icmp_code);
        let (icmp, _) = Icmp::from_prefix_mut(&mut self.net[self.transport..])?;
        let flows = !with_type || has_flow(icmp.kind());
        match field {
            Field::IcmpType | Field::IcmpTypeName => {
                icmp.set_kind(number as u8);
                self.icmp_type = true;
                if matches!(number as u8, icmp::TIMESTAMP | icmp::TIMESTAMP_REPLY) {
                    self.extend_to(self.transport + ICMP_TIMESTAMP_LEN);
                }
            }
            Field::IcmpCode | Field::IcmpCodeName => {
                icmp.set_code(number as u8);
                self.icmp_code = true;
            }
            Field::IcmpFlowid if flows => icmp.set_id(number as u16),
            Field::IcmpSeq if flows => icmp.set_seq(number as u16),
            Field::IcmpNextmtu => {
                let kind = if with_type { icmp.kind() } else { icmp::UNREACHABLE };
                // The default code: only this one has an MTU.
                let code = if with_code { icmp.code() } else { 4 };
                if is_need_fragment(kind, code) {
                    icmp.set_seq(number as u16);
                }
            }
            _ => {}
        }
        Some(())
    }

    fn payload_field(&mut self, field: Field, word: &str) -> Option<()> {
        let bytes = match field {
            Field::Payload => unquote(word),
            // Validated, but not used: the captured length is that of the bytes.
            Field::IpCaptureLen => return c_number(word, u32::MAX).map(|_| ()),
            _ => Vec::new(),
        };
        let len =
            if field == Field::Payload { bytes.len() } else { c_number(word, u32::MAX)? as usize };
        if self.make_ip(None) {
            self.make_transport();
        }
        if field == Field::Payload && bytes.is_empty() {
            return Some(());
        }
        self.adjust_to_payload(len);
        let at = self.payload_offset();
        if !bytes.is_empty() {
            self.extend_to(at + bytes.len());
            self.net[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        Some(())
    }

    /// Offset of the payload from the network header.
    fn payload_offset(&self) -> usize {
        let Some(ip) = self.ip().filter(|_| self.is_ip) else { return 0 };
        let head = match ip.protocol() {
            _ if !ip.is_first_fragment() => 0,
            ip_proto::TCP => {
                let offset = self.net.get(self.transport + Tcp::OFFSET_BYTE);
                offset.map_or(0, |byte| usize::from(byte >> 4) * 4).max(Tcp::LEN)
            }
            ip_proto::UDP | ip_proto::UDP_LITE => Udp::LEN,
            _ => 0,
        };
        self.transport + head
    }

    /// Adjusts the lengths to a payload of `len` bytes. If the packet is longer, and
    /// the line gives no header lengths, extends the headers as if they had options.
    fn adjust_to_payload(&mut self, len: usize) {
        let (at, offset) = (self.payload_offset(), self.link_len());
        if !self.is_ip || self.wire_len == 0 {
            self.wire_len = offset + at + len;
            return;
        }
        let mut excess = self.wire_len.saturating_sub(offset + at + len);
        let plain_tcp = self.protocol() == ip_proto::TCP
            && self.ip().is_some_and(|ip| ip.is_first_fragment())
            && self.tcp().is_some_and(|tcp| tcp.header_len() == Tcp::LEN);
        if plain_tcp && !self.tcp_hl {
            let more = (excess - excess % 4).min(60 - Tcp::LEN);
            self.set_tcp_len(Tcp::LEN + more);
            excess -= more;
        }
        let plain_ip = self.ip().is_some_and(|ip| ip.header_len() == Ipv4Header::LEN);
        if plain_ip && !self.ip_hl {
            let more = (excess - excess % 4).min(60 - Ipv4Header::LEN);
            self.set_header_len(Ipv4Header::LEN + more);
        }
    }

    /// Completes the packet: sets lengths and, if the defaults require it, checksums.
    pub(super) fn finish(mut self) -> ParsedPacket {
        if self.defaults.flow.is_some() {
            self.make_ip(None);
        }
        if self.is_ip && self.ip().is_some() {
            self.make_transport();
            let wanted = self.wire_len.saturating_sub(self.link_len());
            let len = if wanted == 0 { self.net.len() } else { wanted.min(0xffff) };
            if let Some(ip) = self.ip_mut() {
                ip.set_total_len(len as u16);
            }
            self.set_udp_len(len);
            if self.defaults.checksum {
                self.extend_to(len);
                self.set_checksums();
            }
        }
        let network = self.ip().map(|_| self.link_len()).filter(|_| self.is_ip);
        let bytes = match self.link {
            Some(link) => [&link.0[..], &self.net].concat(),
            None => self.net,
        };
        self.meta.extra_length = self.wire_len.saturating_sub(bytes.len()) as u32;
        ParsedPacket { bytes, network, meta: self.meta }
    }

    fn set_udp_len(&mut self, len: usize) {
        let is_udp =
            self.protocol() == ip_proto::UDP && self.ip().is_some_and(|ip| ip.is_first_fragment());
        let transport = self.transport;
        let header = self.net.get_mut(transport..).and_then(Udp::from_prefix_mut);
        if let Some((udp, _)) = header.filter(|(udp, _)| is_udp && udp.length() == 0) {
            udp.set_length(len.saturating_sub(transport) as u16);
        }
    }

    fn set_checksums(&mut self) {
        let Some(ip) = self.ip().copied() else { return };
        let end = self.net.len().min(ip.total_len().into());
        let header_len = ip.header_len().clamp(Ipv4Header::LEN, self.net.len());
        let options = self.net[Ipv4Header::LEN..header_len].to_vec();
        if let Some(ip) = self.ip_mut() {
            ip.update_checksum(&options);
        }
        let transport = self.transport;
        let Some(body) = self.net.get_mut(transport..end).filter(|_| !ip.is_fragment()) else {
            return;
        };
        let pseudo: Sum = ip.pseudo(body.len());
        match ip.protocol() {
            ip_proto::TCP => {
                if let Some((tcp, rest)) = Tcp::from_prefix_mut(body) {
                    tcp.update_checksum(pseudo, rest);
                }
            }
            ip_proto::UDP => {
                if let Some((udp, rest)) = Udp::from_prefix_mut(body) {
                    udp.update_checksum(pseudo, rest);
                }
            }
            ip_proto::ICMP => {
                if let Some((icmp, rest)) = Icmp::from_prefix_mut(body) {
                    icmp.update_checksum(rest);
                }
            }
            _ => {}
        }
    }
}
