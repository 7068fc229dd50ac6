//! Prints packets as sketches.

use super::build::{FLAG_WORDS, build};
use super::ip::{
    ChecksumSpec, DEFAULT_WINDOW, IpSpec, TransportSpec, correct_checksum, default_kind,
};
use super::words::quote;
use super::{Layer, MAX_DEPTH, incorrect_checksum};
use crate::options::{TcpOptionFilter, parse_ip, parse_tcp, print_ip, print_tcp};
use crate::tcp::flag;
use crate::{
    Arp, Ethernet, Fragment6, Icmp, Ipv4Header, Ipv6Header, Tcp, Udp, Vlan, arp, ether_type, icmp,
    icmp6, ip_proto, names,
};
use std::fmt::Write;
use std::net::IpAddr;

/// Prints a packet so that [`build`] builds an equal one. A packet that a sketch
/// cannot describe is printed as `hex`.
pub fn print(bytes: &[u8], layer: Layer) -> String {
    let text = match layer {
        Layer::Ethernet => frame(bytes),
        Layer::Network => network(bytes, MAX_DEPTH),
    };
    // Building the text decides whether it describes the packet.
    let same = |text: &String| {
        build(text).is_ok_and(|sketch| sketch.layer == layer && sketch.bytes == bytes)
    };
    text.filter(same).unwrap_or_else(|| match layer {
        Layer::Ethernet => format!("eth hex{}", spaced_hex(bytes)),
        Layer::Network => format!("hex{}", spaced_hex(bytes)),
    })
}

fn spaced_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, " {byte:02x}");
        text
    })
}

fn frame(bytes: &[u8]) -> Option<String> {
    let (header, mut rest) = Ethernet::from_prefix(bytes)?;
    let mut text = format!("eth {} > {}", header.src().with_colons(), header.dst().with_colons());
    text.make_ascii_lowercase();
    let mut kind = header.ether_type();
    while let (ether_type::VLAN | ether_type::QINQ, Some((tag, after))) =
        (kind, Vlan::from_prefix(rest))
    {
        let word = if kind == ether_type::VLAN { "vlan" } else { "qinq" };
        let _ = write!(text, " {word} {}", tag.id());
        if tag.priority() > 0 {
            let _ = write!(text, " prio {}", tag.priority());
        }
        if tag.drop_eligible() {
            text.push_str(" dei");
        }
        (kind, rest) = (tag.ether_type(), after);
    }
    let body = match kind {
        ether_type::IPV4 => ipv4(rest, MAX_DEPTH),
        ether_type::IPV6 => ipv6(rest, MAX_DEPTH),
        ether_type::ARP => arp_message(rest),
        _ => None,
    };
    match body {
        Some(body) => Some(format!("{text} {body}")),
        None => Some(format!("{text} type {kind:#06x} hex{}", spaced_hex(rest))),
    }
}

fn network(bytes: &[u8], depth: usize) -> Option<String> {
    match bytes.first()? >> 4 {
        4 => ipv4(bytes, depth),
        6 => ipv6(bytes, depth),
        0 => arp_message(bytes),
        _ => None,
    }
}

fn arp_message(bytes: &[u8]) -> Option<String> {
    let (message, rest) = Arp::from_prefix(bytes)?;
    if !message.is_ethernet_ipv4() || rest.iter().any(|&b| b != 0) {
        return None;
    }
    let (sender, target) = (message.sender_mac().with_colons(), message.target_mac());
    let mut text = match message.operation() {
        arp::REQUEST => {
            let mut text = format!(
                "arp who-has {} tell {} {sender}",
                message.target_ip(),
                message.sender_ip()
            );
            if !target.is_zero() {
                let _ = write!(text, " target {}", target.with_colons());
            }
            text
        }
        arp::REPLY => format!(
            "arp reply {} is-at {sender} to {} {}",
            message.sender_ip(),
            message.target_ip(),
            target.with_colons()
        ),
        operation => format!(
            "arp op {operation} sender {} {sender} target {} {}",
            message.sender_ip(),
            message.target_ip(),
            target.with_colons()
        ),
    };
    text.make_ascii_lowercase();
    if !rest.is_empty() {
        let _ = write!(text, " pad {}", rest.len());
    }
    Some(text)
}

fn ipv4(bytes: &[u8], depth: usize) -> Option<String> {
    let (header, after) = Ipv4Header::from_prefix(bytes)?;
    let (options, rest) = header.split_options(after)?;
    if header.version() != 4 {
        return None;
    }
    let mut ip = IpSpec::new(header.src().into(), header.dst().into());
    (ip.ttl, ip.tos, ip.id) = (header.ttl(), header.tos(), header.id().into());
    (ip.protocol, ip.fragment) = (header.protocol(), header.fragment_word());
    ip.options = options.to_vec();
    let head = header.header_len();
    let mut body = rest.to_vec();
    ip.match_lengths(head, header.total_len().into(), &mut body);
    let mut correct = *header;
    correct.update_checksum(options);
    ip.sum = checksum_spec(header.checksum(), correct.checksum());
    let first = header.is_first_fragment();
    ip.text(&body, first, depth)
}

fn ipv6(bytes: &[u8], depth: usize) -> Option<String> {
    let (header, rest) = Ipv6Header::from_prefix(bytes)?;
    if header.version() != 6 {
        return None;
    }
    let mut ip = IpSpec::new(header.src().into(), header.dst().into());
    (ip.ttl, ip.tos, ip.flow) = (header.hop_limit(), header.traffic_class(), header.flow_label());
    ip.protocol = header.next_header();
    let (mut head, mut body) = (Ipv6Header::LEN, rest.to_vec());
    if let Some((fragment, after)) = fragment_header(header, rest) {
        ip.fragmented = true;
        (ip.protocol, ip.id) = (fragment.next_header(), fragment.id());
        let more = if fragment.more_fragments() { Ipv4Header::MORE_FRAGMENTS } else { 0 };
        ip.fragment = more | (fragment.offset() / 8);
        head += Fragment6::LEN;
        body = after.to_vec();
    }
    ip.match_lengths(head, Ipv6Header::LEN + usize::from(header.payload_len()), &mut body);
    ip.text(&body, ip.fragment & Ipv4Header::OFFSET_MASK == 0, depth)
}

/// A fragment header that a sketch can describe, and the bytes behind it.
fn fragment_header<'b>(header: &Ipv6Header, rest: &'b [u8]) -> Option<(&'b Fragment6, &'b [u8])> {
    let (fragment, after) = Fragment6::from_prefix(rest)?;
    let plain = Fragment6::new(
        fragment.next_header(),
        fragment.offset(),
        fragment.more_fragments(),
        fragment.id(),
    );
    (header.next_header() == ip_proto::FRAGMENT && *fragment == plain).then_some((fragment, after))
}

/// Describes the checksum field `actual`, if `correct` is the correct checksum.
fn checksum_spec(actual: u16, correct: u16) -> ChecksumSpec {
    if actual == correct {
        ChecksumSpec::Correct
    } else if actual == incorrect_checksum(correct) {
        ChecksumSpec::Incorrect
    } else {
        ChecksumSpec::Value(actual)
    }
}

impl IpSpec {
    /// Describes the difference between the length in the header, `claimed`, and
    /// the length of the bytes. Changes `body` to the length in the header.
    fn match_lengths(&mut self, head: usize, claimed: usize, body: &mut Vec<u8>) {
        let present = head + body.len();
        let extra = body.get(claimed.saturating_sub(head)..).unwrap_or_default();
        if claimed < head || extra.iter().any(|&b| b != 0) {
            self.iplen =
                Some(claimed.saturating_sub(if self.src.is_ipv6() { 40 } else { 0 }) as u16);
            self.len = Some(present);
            return;
        }
        self.len = Some(claimed);
        self.pad = present.saturating_sub(claimed);
        self.short = claimed.saturating_sub(present);
        body.resize(claimed - head, 0);
    }

    /// Prints the sketch of a packet with `body` behind the network header.
    fn text(&mut self, body: &[u8], first: bool, depth: usize) -> Option<String> {
        let payload = if first { self.read_transport(body)? } else { body };
        let mut text = self.addresses(first);
        match self.protocol {
            ip_proto::UDP => text.push_str(" udp"),
            ip_proto::TCP => text.push_str(" tcp"),
            ip_proto::ICMP => text.push_str(" icmp"),
            ip_proto::ICMPV6 => text.push_str(" icmp6"),
            protocol => {
                let _ = write!(text, " proto {protocol}");
            }
        }
        if first {
            self.print_transport(&mut text);
        }
        self.print_network(&mut text);
        if first {
            self.print_check(&mut text);
        }
        self.print_payload(payload, first, depth, &mut text);
        Some(text)
    }

    fn addresses(&self, first: bool) -> String {
        let ports = first && matches!(self.protocol, ip_proto::TCP | ip_proto::UDP);
        let one = |addr: IpAddr, port: u16| match addr {
            _ if port == 0 || !ports => addr.to_string(),
            IpAddr::V4(addr) => format!("{addr}:{port}"),
            IpAddr::V6(addr) => format!("[{addr}]:{port}"),
        };
        let t = &self.transport;
        format!("{} > {}", one(self.src, t.sport), one(self.dst, t.dport))
    }

    fn print_network(&self, text: &mut String) {
        let v4 = self.src.is_ipv4();
        let _ = write!(text, " {} {}", if v4 { "ttl" } else { "hop" }, self.ttl);
        if self.tos != 0 {
            let _ = write!(text, " {} {}", if v4 { "tos" } else { "class" }, self.tos);
        }
        if self.flow != 0 {
            let _ = write!(text, " flow {:#x}", self.flow);
        }
        if self.id != 0 {
            let _ = write!(text, " id {}", self.id);
        }
        if self.fragment & Ipv4Header::RESERVED_FLAG != 0 {
            text.push_str(" rf");
        }
        if self.fragment & Ipv4Header::DONT_FRAGMENT != 0 {
            text.push_str(" df");
        }
        let offset = self.fragment & Ipv4Header::OFFSET_MASK;
        let more = self.fragment & Ipv4Header::MORE_FRAGMENTS != 0;
        if offset != 0 || more || self.fragmented {
            let _ = write!(text, " frag {}{}", offset * 8, if more { "+" } else { "" });
        }
        print_options("ipopt", &self.options, |l, t| print_ip(l, true, t), parse_ip, text);
        if let Some(len) = self.len {
            let _ = write!(text, " len {len}");
        }
        if let Some(len) = self.iplen {
            let _ = write!(text, " iplen {len}");
        }
        if self.short > 0 {
            let _ = write!(text, " short {}", self.short);
        }
        if self.pad > 0 {
            let _ = write!(text, " pad {}", self.pad);
        }
        match self.sum {
            ChecksumSpec::Correct => {}
            ChecksumSpec::Incorrect => text.push_str(" badsum"),
            ChecksumSpec::Value(sum) => {
                let _ = write!(text, " sum {sum:#06x}");
            }
        }
    }

    /// Parses the transport header at the start of `body`; returns the payload.
    fn read_transport<'b>(&mut self, body: &'b [u8]) -> Option<&'b [u8]> {
        let mut t = TransportSpec::default();
        let (check, payload) = match self.protocol {
            ip_proto::UDP => {
                let (udp, rest) = Udp::from_prefix(body)?;
                (t.sport, t.dport) = (udp.src_port(), udp.dst_port());
                t.ulen = Some(udp.length()).filter(|&len| usize::from(len) != body.len());
                (udp.checksum(), rest)
            }
            ip_proto::TCP => {
                let (tcp, rest) = Tcp::from_prefix(body)?;
                (tcp.checksum(), t.read_tcp(tcp, rest))
            }
            ip_proto::ICMP | ip_proto::ICMPV6 => {
                let (icmp, rest) = Icmp::from_prefix(body)?;
                t.kind = Some(icmp.kind());
                (t.code, t.rest) = (icmp.code(), icmp.rest());
                (icmp.checksum(), rest)
            }
            _ => return Some(body),
        };
        t.check =
            checksum_spec(check, correct_checksum(self.protocol, |len| self.pseudo(len), body));
        self.transport = t;
        Some(payload)
    }

    fn print_transport(&self, text: &mut String) {
        let t = &self.transport;
        match self.protocol {
            ip_proto::TCP => t.print_tcp(text),
            ip_proto::ICMP | ip_proto::ICMPV6 => t.print_icmp(self.protocol, text),
            _ => {}
        }
    }

    fn print_check(&self, text: &mut String) {
        let t = &self.transport;
        if let Some(len) = t.ulen {
            let _ = write!(text, " ulen {len}");
        }
        match t.check {
            ChecksumSpec::Correct => {}
            ChecksumSpec::Value(0) => text.push_str(" nocheck"),
            ChecksumSpec::Incorrect => text.push_str(" badcheck"),
            ChecksumSpec::Value(check) => {
                let _ = write!(text, " check {check:#06x}");
            }
        }
    }

    fn print_payload(&self, payload: &[u8], first: bool, depth: usize, text: &mut String) {
        // `len` describes the zeros at the end.
        let used = payload.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
        let quoted = first
            && (self.protocol == ip_proto::IPIP
                || self.protocol == ip_proto::IPV6
                || self.protocol == ip_proto::ICMP
                    && self.transport.kind.is_some_and(icmp::is_error)
                || self.protocol == ip_proto::ICMPV6
                    && self.transport.kind.is_some_and(icmp6::is_error));
        let inner = depth.checked_sub(1).filter(|_| quoted).and_then(|d| network(payload, d));
        if used == 0 {
        } else if let Some(inner) = inner {
            let _ = write!(text, " [{inner}]");
        } else if let Some(quoted) = quote(&payload[..used]) {
            let _ = write!(text, " {quoted}");
        } else {
            text.push_str(" data ");
            for byte in &payload[..used] {
                let _ = write!(text, "{byte:02x}");
            }
        }
    }
}

impl TransportSpec {
    /// Parses a TCP header; returns the payload.
    fn read_tcp<'b>(&mut self, tcp: &Tcp, rest: &'b [u8]) -> &'b [u8] {
        (self.sport, self.dport) = (tcp.src_port(), tcp.dst_port());
        (self.seq, self.ack, self.flags) = (tcp.seq(), tcp.ack(), tcp.flags());
        self.window = Some(tcp.window()).filter(|&window| window != DEFAULT_WINDOW);
        (self.urgent, self.reserved) = (tcp.urgent(), tcp.reserved());
        if let Some((options, payload)) = tcp.split_options(rest) {
            self.options = options.to_vec();
            return payload;
        }
        self.off = Some(tcp.header_len() as u8);
        rest
    }

    fn print_tcp(&self, text: &mut String) {
        for (bit, word) in FLAG_WORDS.iter().enumerate() {
            if self.flags & !flag::ACK & 1 << bit != 0 {
                let _ = write!(text, " {word}");
            }
        }
        if self.seq != 0 {
            let _ = write!(text, " seq {}", self.seq);
        }
        if self.flags & flag::ACK != 0 {
            let _ = write!(text, " ack {}", self.ack);
        } else if self.ack != 0 {
            let _ = write!(text, " acknum {}", self.ack);
        }
        if let Some(window) = self.window {
            let _ = write!(text, " win {window}");
        }
        if self.urgent != 0 {
            let _ = write!(text, " urp {}", self.urgent);
        }
        if let Some(off) = self.off {
            let _ = write!(text, " off {off}");
        }
        if self.reserved != 0 {
            let _ = write!(text, " reserved {}", self.reserved);
        }
        print_options(
            "tcpopt",
            &self.options,
            |list, out| print_tcp(list, TcpOptionFilter::All, out),
            |text| parse_tcp(text, TcpOptionFilter::All),
            text,
        );
    }

    fn print_icmp(&self, protocol: u8, text: &mut String) {
        let kind = self.kind.unwrap_or(default_kind(protocol));
        match names::icmp_type_name(kind).filter(|_| protocol == ip_proto::ICMP) {
            Some(name) => {
                let _ = write!(text, " {name}");
            }
            None => {
                let _ = write!(text, " type {kind}");
            }
        }
        let name = names::icmp_code_name(kind, self.code).filter(|_| protocol == ip_proto::ICMP);
        match name {
            Some(name) => {
                let _ = write!(text, " code {name}");
            }
            None if self.code != 0 => {
                let _ = write!(text, " code {}", self.code);
            }
            None => {}
        }
        let query = match protocol {
            ip_proto::ICMP => icmp::is_query(kind),
            _ => icmp6::is_query(kind),
        };
        let (ident, seq) = (self.rest >> 16, self.rest & 0xffff);
        if !query && self.rest != 0 {
            let _ = write!(text, " rest {:#x}", self.rest);
        } else if query && self.rest != 0 {
            let _ = write!(text, " ident {ident} seq {seq}");
        }
    }
}

/// Prints options as text if that can be parsed back, otherwise in hexadecimal.
fn print_options(
    word: &str,
    list: &[u8],
    print: impl Fn(&[u8], &mut String),
    parse: impl Fn(&str) -> Option<Vec<u8>>,
    text: &mut String,
) {
    if list.is_empty() {
        return;
    }
    let _ = write!(text, " {word} ");
    let start = text.len();
    print(list, text);
    let exact = parse(&text[start..]).is_some_and(|mut built| {
        built.resize(built.len().next_multiple_of(4), 0);
        built == list
    });
    if !exact {
        text.truncate(start);
        text.push_str("0x");
        for byte in list {
            let _ = write!(text, "{byte:02x}");
        }
    }
}
