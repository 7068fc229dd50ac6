//! Output line of `IPPrint`.

use super::{Contents, at_most, push_byte};
use crate::tcp::flag;
use crate::timestamp::Timestamp;
use crate::{Ethernet, Icmp, Ipv4Header, Tcp, Udp, icmp, ip_proto, names};
use std::fmt::Write;

/// The fields and options of `IPPrint`'s line beside the packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct IpPrint<'a> {
    /// Printed first, if not empty.
    pub label: &'a str,
    /// Time of the packet.
    pub timestamp: Option<Timestamp>,
    /// Number of the packet's aggregate.
    pub aggregate: Option<u32>,
    /// Control information of the packet's VLAN tag.
    pub vlan: Option<u16>,
    /// The packet's paint.
    pub paint: Option<u8>,
    /// The packet's Ethernet header.
    pub ether: Option<&'a Ethernet>,
    /// Whether to print the identification.
    pub id: bool,
    /// Whether to print the TTL.
    pub ttl: bool,
    /// Whether to print the type of service.
    pub tos: bool,
    /// Whether to print the length.
    pub length: bool,
    /// Whether to print ICMP identifiers and sequence numbers byte-swapped, as Click
    /// does if `SWAP` is false.
    pub swapped: bool,
    /// Output format of the bytes.
    pub contents: Contents,
    /// Whether to print the bytes of the payload instead of the whole packet.
    pub payload: bool,
    /// Maximum number of bytes to print; all if `None`.
    pub max: Option<usize>,
}

impl IpPrint<'_> {
    /// Appends the line for the packet `data`, whose IPv4 header is at
    /// `network`.
    pub fn line(&self, data: &[u8], network: usize, out: &mut String) {
        self.prefix(out);
        let packet = data.get(network..).unwrap_or_default();
        let Some((ip, _)) = Ipv4Header::from_prefix(packet) else {
            out.push_str("truncated-ip");
            return;
        };
        self.fields(ip, out);
        let payload_len = i32::from(ip.total_len()) - ip.header_len() as i32;
        let transport = packet.get(ip.header_len()..).unwrap_or_default();
        let view = PacketView {
            ip,
            len: data.len(),
            transport: at_most(transport, Some(payload_len.max(0) as usize)),
        };
        match ip.protocol() {
            ip_proto::TCP => view.tcp(out),
            ip_proto::UDP => view.udp(out),
            ip_proto::ICMP => view.icmp(self.swapped, out),
            protocol => {
                view.pair(out);
                let _ = write!(out, ": ip-proto-{protocol}");
            }
        }
        if ip.is_fragment() {
            let more = if ip.more_fragments() { "+" } else { "" };
            let (id, offset) = (ip.id(), ip.fragment_offset());
            let _ = write!(out, " (frag {id}:{payload_len}@{offset}{more})");
        }
        let bytes = if self.payload { payload(ip, transport) } else { data };
        self.print_contents(bytes, out);
    }

    /// Prints the fields that are not from the IP header.
    fn prefix(&self, out: &mut String) {
        if !self.label.is_empty() {
            let _ = write!(out, "{}: ", self.label);
        }
        if let Some(time) = self.timestamp {
            let _ = write!(out, "{time}: ");
        }
        if let Some(aggregate) = self.aggregate {
            let _ = write!(out, "#{aggregate}");
        }
        if let Some(tci) = self.vlan {
            let _ = write!(out, " VLAN:{tci}");
        }
        if let Some(paint) = self.paint {
            let before = if self.aggregate.is_some() { "." } else { "paint " };
            let _ = write!(out, "{before}{paint}");
        }
        if self.aggregate.is_some() || self.paint.is_some() {
            out.push_str(": ");
        }
        if let Some(ether) = self.ether {
            let _ = write!(out, "{} > {}: ", ether.src(), ether.dst());
        }
    }

    /// Prints the optional fields of the IP header.
    fn fields(&self, ip: &Ipv4Header, out: &mut String) {
        for (wanted, name, value) in [
            (self.id, "id", ip.id()),
            (self.ttl, "ttl", ip.ttl().into()),
            (self.tos, "tos", ip.tos().into()),
            (self.length, "length", ip.total_len()),
        ] {
            if wanted {
                let _ = write!(out, "{name} {value} ");
            }
        }
    }

    /// Prints bytes on separate lines: 24 per line in hexadecimal, 48 as characters.
    fn print_contents(&self, bytes: &[u8], out: &mut String) {
        if self.contents == Contents::None {
            return;
        }
        let group = self.contents.group_len();
        for (i, &byte) in at_most(bytes, self.max).iter().enumerate() {
            if i % (6 * group) == 0 {
                out.push_str("\n  ");
            } else if i % group == 0 {
                out.push(' ');
            }
            push_byte(byte, self.contents, out);
        }
    }
}

/// The bytes behind the transport header.
fn payload<'b>(ip: &Ipv4Header, transport: &'b [u8]) -> &'b [u8] {
    let head = match ip.protocol() {
        _ if !ip.is_first_fragment() => 0,
        ip_proto::TCP => {
            Tcp::from_prefix(transport).map_or(usize::MAX, |(tcp, _)| tcp.header_len())
        }
        ip_proto::UDP => Udp::LEN,
        _ => 0,
    };
    transport.get(head..).unwrap_or_default()
}

/// A packet with an IPv4 header.
struct PacketView<'b> {
    ip: &'b Ipv4Header,
    /// Length of the whole packet.
    len: usize,
    transport: &'b [u8],
}

impl PacketView<'_> {
    /// Prints source and destination address.
    fn pair(&self, out: &mut String) {
        let _ = write!(out, "{} > {}", self.ip.src(), self.ip.dst());
    }

    /// Prints addresses with ports and returns `true`; if the packet has no ports,
    /// prints the reason and returns `false`.
    fn pair_with_ports(&self, name: &str, out: &mut String) -> bool {
        let &[a, b, c, d, ..] = self.transport else {
            self.pair(out);
            let cut = if self.ip.is_first_fragment() { "truncated-" } else { "" };
            let _ = write!(out, ": {cut}{name}");
            return false;
        };
        if !self.ip.is_first_fragment() {
            self.pair(out);
            let _ = write!(out, ": {name}");
            return false;
        }
        let (sport, dport) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let _ = write!(out, "{}.{sport} > {}.{dport}: ", self.ip.src(), self.ip.dst());
        true
    }

    fn tcp(&self, out: &mut String) {
        /// Number of header bytes up to the flags, and up to the window: the rest may be missing.
        const WITH_FLAGS: usize = Tcp::FLAGS + 1;
        const WITH_WINDOW: usize = Tcp::WINDOW + 2;
        if !self.pair_with_ports("tcp", out) {
            return;
        }
        if self.transport.len() < WITH_FLAGS {
            out.push_str("truncated-tcp");
            return;
        }
        let mut bytes = [0; Tcp::LEN];
        let present = self.transport.len().min(Tcp::LEN);
        bytes[..present].copy_from_slice(&self.transport[..present]);
        let tcp = Tcp(bytes);
        let ip_len = i32::from(self.ip.total_len());
        let mut seqlen = ip_len - self.ip.header_len() as i32 - tcp.header_len() as i32;
        let mut any = false;
        for (bit, letter, takes_number) in
            [(flag::SYN, 'S', 1), (flag::FIN, 'F', 1), (flag::RST, 'R', 0), (flag::PSH, 'P', 0)]
        {
            if tcp.has(bit) {
                out.push(letter);
                seqlen += takes_number;
                any = true;
            }
        }
        if !any {
            out.push('.');
        }
        let (seq, end) = (tcp.seq(), tcp.seq().wrapping_add_signed(seqlen));
        let _ = write!(out, " {seq}:{end}({seqlen},{},{ip_len})", self.len);
        if tcp.is_ack() {
            let _ = write!(out, " ack {}", tcp.ack());
        }
        if self.transport.len() < WITH_WINDOW {
            out.push_str("truncated-tcp");
        } else {
            let _ = write!(out, " win {}", tcp.window());
        }
    }

    fn udp(&self, out: &mut String) {
        if !self.pair_with_ports("udp", out) {
            return;
        }
        match Udp::from_prefix(self.transport) {
            Some((udp, _)) => {
                let _ = write!(out, "udp {}", udp.length());
            }
            None => out.push_str("truncated-udp"),
        }
    }

    fn icmp(&self, swapped: bool, out: &mut String) {
        self.pair(out);
        out.push_str(": ");
        if !self.ip.is_first_fragment() {
            out.push_str("icmp");
            return;
        }
        let &[kind, code, ..] = self.transport else {
            out.push_str("truncated-icmp");
            return;
        };
        let header = Icmp::from_prefix(self.transport);
        match kind {
            icmp::ECHO | icmp::ECHO_REPLY => {
                let _ = write!(out, "icmp {} ", names::icmp_type_name(kind).unwrap_or_default());
                let Some((header, _)) = header else {
                    out.push_str("truncated-icmp");
                    return;
                };
                let show = |n: u16| if swapped { n.swap_bytes() } else { n };
                let _ = write!(out, "({}, {})", show(header.id()), show(header.seq()));
            }
            icmp::UNREACHABLE => print_unreachable(code, header, out),
            kind => {
                let _ = match names::icmp_type_name(kind) {
                    Some(name) => write!(out, "icmp {name}"),
                    None => write!(out, "icmp type {kind}"),
                };
                let _ = match names::icmp_code_name(kind, code) {
                    Some(name) => write!(out, " {name}"),
                    None if code != 0 => write!(out, " code {code}"),
                    None => Ok(()),
                };
            }
        }
    }
}

/// Prints a destination unreachable message with the destination of the quoted packet.
fn print_unreachable(code: u8, header: Option<(&Icmp, &[u8])>, out: &mut String) {
    /// The codes with details from the quoted packet (RFC 792).
    const PROTOCOL: u8 = 2;
    const PORT: u8 = 3;
    const NEED_FRAGMENT: u8 = 4;
    let name = match names::icmp_code_name(icmp::UNREACHABLE, code) {
        Some(name) => name.to_string(),
        None => format!("code {code}"),
    };
    let quoted =
        header.and_then(|(icmp, rest)| Some((icmp, Ipv4Header::from_prefix(rest)?.0, rest)));
    let Some((icmp, quoted, rest)) = quoted else {
        let _ = write!(out, "icmp unreachable {name} truncated-icmp");
        return;
    };
    let _ = write!(out, "icmp {} unreachable {name}", quoted.dst());
    let protocol = quoted.protocol();
    match code {
        PROTOCOL => {
            let _ = match names::protocol_name(protocol) {
                Some(name) => write!(out, " {name}"),
                None => write!(out, " {protocol}"),
            };
        }
        PORT => {
            let _ = match names::protocol_name(protocol) {
                Some(name) => write!(out, " {name}"),
                None => write!(out, " protocol {protocol}"),
            };
            match rest.get(quoted.header_len()..).unwrap_or_default() {
                &[_, _, a, b, ..] => {
                    let _ = write!(out, "/{}", u16::from_be_bytes([a, b]));
                }
                _ => out.push_str("truncated-icmp"),
            }
        }
        NEED_FRAGMENT if icmp.seq() != 0 => {
            let _ = write!(out, " (mtu {})", icmp.seq());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MacAddr, sketch};
    use proptest::prelude::*;

    fn line(print: IpPrint<'_>, text: &str) -> String {
        let mut out = String::new();
        print.line(&sketch::build(text).expect("is a sketch").bytes, 0, &mut out);
        out
    }

    #[test]
    fn matches_click() {
        for (text, expected) in [
            ("1.0.0.1:5 > 2.0.0.2:6 udp len 60", "1.0.0.1.5 > 2.0.0.2.6: udp 40"),
            (
                "1.0.0.1:5 > 2.0.0.2:6 tcp syn seq 10 win 99",
                "1.0.0.1.5 > 2.0.0.2.6: S 10:11(1,40,40) win 99",
            ),
            (
                "1.0.0.1:5 > 2.0.0.2:6 tcp psh fin ack 7 seq 4294967295 len 50 win 1 pad 4",
                "1.0.0.1.5 > 2.0.0.2.6: FP 4294967295:10(11,54,50) ack 7 win 1",
            ),
            (
                "1.0.0.1:5 > 2.0.0.2:6 tcp ack 7 win 1",
                "1.0.0.1.5 > 2.0.0.2.6: . 0:0(0,40,40) ack 7 win 1",
            ),
            ("1.0.0.1 > 2.0.0.2 proto 47", "1.0.0.1 > 2.0.0.2: ip-proto-47"),
            (
                "1.0.0.1 > 2.0.0.2 icmp echo ident 258 seq 3",
                "1.0.0.1 > 2.0.0.2: icmp echo (258, 3)",
            ),
            (
                "1.0.0.1 > 2.0.0.2 icmp echo-reply ident 258 seq 3",
                "1.0.0.1 > 2.0.0.2: icmp echo-reply (258, 3)",
            ),
            (
                "1.0.0.1 > 2.0.0.2 icmp timeexceeded code transit",
                "1.0.0.1 > 2.0.0.2: icmp timeexceeded transit",
            ),
            ("1.0.0.1 > 2.0.0.2 icmp type 77 code 2", "1.0.0.1 > 2.0.0.2: icmp type 77 code 2"),
            (
                "1.0.0.1 > 2.0.0.2 icmp unreachable code port [3.0.0.3:1 > 4.0.0.4:53 udp]",
                "1.0.0.1 > 2.0.0.2: icmp 4.0.0.4 unreachable port udp/53",
            ),
            (
                "1.0.0.1 > 2.0.0.2 icmp unreachable code protocol [3.0.0.3 > 4.0.0.4 proto 99]",
                "1.0.0.1 > 2.0.0.2: icmp 4.0.0.4 unreachable protocol 99",
            ),
            (
                "1.0.0.1 > 2.0.0.2 icmp unreachable code needfrag rest 576 [3.0.0.3 > 4.0.0.4 tcp]",
                "1.0.0.1 > 2.0.0.2: icmp 4.0.0.4 unreachable needfrag (mtu 576)",
            ),
            (
                "1.0.0.1 > 2.0.0.2 icmp unreachable code 77",
                "1.0.0.1 > 2.0.0.2: icmp unreachable code 77 truncated-icmp",
            ),
            (
                "1.0.0.1:5 > 2.0.0.2:6 udp id 9 frag 0+ len 36",
                "1.0.0.1.5 > 2.0.0.2.6: udp 16 (frag 9:16@0+)",
            ),
            ("1.0.0.1 > 2.0.0.2 udp id 9 frag 16 len 36", "1.0.0.1 > 2.0.0.2: udp (frag 9:16@16)"),
            (
                "1.0.0.1 > 2.0.0.2 icmp id 9 frag 16 len 36",
                "1.0.0.1 > 2.0.0.2: icmp (frag 9:16@16)",
            ),
        ] {
            assert_eq!(line(IpPrint::default(), text), expected, "{text}");
        }
    }

    #[test]
    fn truncated_packets() {
        for (text, expected) in [
            ("hex 45", "truncated-ip"),
            ("1.0.0.1:5 > 2.0.0.2:6 udp short 5", "1.0.0.1 > 2.0.0.2: truncated-udp"),
            ("1.0.0.1:5 > 2.0.0.2:6 udp short 1", "1.0.0.1.5 > 2.0.0.2.6: truncated-udp"),
            ("1.0.0.1:5 > 2.0.0.2:6 tcp short 7", "1.0.0.1.5 > 2.0.0.2.6: truncated-tcp"),
            (
                "1.0.0.1:5 > 2.0.0.2:6 tcp ack 5 short 5",
                "1.0.0.1.5 > 2.0.0.2.6: . 0:0(0,35,40) ack 5truncated-tcp",
            ),
            ("1.0.0.1 > 2.0.0.2 icmp short 7", "1.0.0.1 > 2.0.0.2: truncated-icmp"),
            ("1.0.0.1 > 2.0.0.2 icmp short 1", "1.0.0.1 > 2.0.0.2: icmp echo truncated-icmp"),
        ] {
            assert_eq!(line(IpPrint::default(), text), expected, "{text}");
        }
    }

    #[test]
    fn all_fields_together() {
        let ether = Ethernet::new(MacAddr::BROADCAST, MacAddr([0, 0, 0, 0, 0, 1]), 0x800);
        let print = IpPrint {
            label: "x",
            timestamp: Some(Timestamp::new(1, 5)),
            aggregate: Some(4),
            paint: Some(2),
            ether: Some(&ether),
            id: true,
            ttl: true,
            tos: true,
            length: true,
            ..IpPrint::default()
        };
        const SKETCH: &str = "1.0.0.1:5 > 2.0.0.2:6 udp ttl 9 tos 4 id 3";
        assert_eq!(
            line(print, SKETCH),
            "x: 1.000000005: #4.2: 00-00-00-00-00-01 > FF-FF-FF-FF-FF-FF: \
             id 3 ttl 9 tos 4 length 28 1.0.0.1.5 > 2.0.0.2.6: udp 8"
        );
        let print = IpPrint { paint: Some(2), vlan: Some(7), ..IpPrint::default() };
        assert_eq!(line(print, SKETCH), " VLAN:7paint 2: 1.0.0.1.5 > 2.0.0.2.6: udp 8");
        let print = IpPrint { swapped: true, ..IpPrint::default() };
        assert_eq!(
            line(print, "1.0.0.1 > 2.0.0.2 icmp ident 1 seq 2"),
            "1.0.0.1 > 2.0.0.2: icmp echo (256, 512)"
        );
    }

    #[test]
    fn contents() {
        const SKETCH: &str = "1.0.0.1:5 > 2.0.0.2:6 udp nocheck \"hello, world\"";
        let hex = IpPrint { contents: Contents::Hex, max: Some(27), ..IpPrint::default() };
        let text = line(hex, SKETCH);
        assert_eq!(
            text.split_once('\n'),
            Some((
                "1.0.0.1.5 > 2.0.0.2.6: udp 20",
                "  45000028 00000000 401177c3 01000001 02000002 00050006\n  001400"
            ))
        );
        let payload =
            IpPrint { contents: Contents::Ascii, payload: true, max: None, ..IpPrint::default() };
        assert_eq!(line(payload, SKETCH), "1.0.0.1.5 > 2.0.0.2.6: udp 20\n  hello, w orld");
        let tcp = "1.0.0.1:5 > 2.0.0.2:6 tcp tcpopt nop;nop;nop;nop win 0 \"data\"";
        assert!(line(payload, tcp).ends_with("\n  data"));
        let raw = "1.0.0.1 > 2.0.0.2 proto 9 \"raw\"";
        assert!(line(payload, raw).ends_with("\n  raw"));
    }

    proptest! {
        #[test]
        fn no_packet_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), proto in 0usize..3, network in 0usize..90) {
            if let Some(byte) = bytes.get_mut(9) {
                *byte = [1, 6, 17][proto];
            }
            let print = IpPrint { contents: Contents::Hex, payload: true, ..IpPrint::default() };
            print.line(&bytes, 0, &mut String::new());
            print.line(&bytes, network, &mut String::new());
        }
    }
}
