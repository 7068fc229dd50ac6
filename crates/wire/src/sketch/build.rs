//! Builds packets from sketches.

use super::ip::{ChecksumSpec, IpSpec};
use super::words::{Words, hex, number, unquote};
use super::{Layer, MAX_DEPTH, Sketch};
use crate::options::{TcpOptionFilter, parse_ip, parse_tcp};
use crate::tcp::flag;
use crate::{Arp, Ethernet, Ipv4Header, MacAddr, Vlan, arp, ether_type, ip_proto, names};
use std::net::{IpAddr, Ipv4Addr};

/// Builds the packet that `text` describes; the error is a message for the user.
pub fn build(text: &str) -> Result<Sketch, String> {
    packet(text, MAX_DEPTH)
}

fn packet(text: &str, depth: usize) -> Result<Sketch, String> {
    let mut words = Words::new(text)?;
    if words.eat("eth") {
        return Ok(Sketch { bytes: frame(&mut words, depth)?, layer: Layer::Ethernet });
    }
    Ok(Sketch { bytes: body(&mut words, depth)?.1, layer: Layer::Network })
}

/// Builds a frame from the words behind `eth`.
fn frame(words: &mut Words<'_>, depth: usize) -> Result<Vec<u8>, String> {
    if words.eat("hex") {
        return rest_as_hex(words);
    }
    const MAC: &str = "an Ethernet address";
    let src: MacAddr = words.value("eth", MAC)?;
    words.expect(">")?;
    let dst: MacAddr = words.value(">", MAC)?;
    // The type field of each header is set when the next header is known.
    let mut bytes = Ethernet::new(dst, src, 0).0.to_vec();
    while let Some(word @ ("vlan" | "qinq")) = words.peek() {
        words.next();
        let tag = if word == "vlan" { ether_type::VLAN } else { ether_type::QINQ };
        set_type_field(&mut bytes, tag);
        let mut vlan = Vlan([0; Vlan::LEN]);
        vlan.set_id(words.number(word, Vlan::ID_MASK.into())? as u16);
        if words.eat("prio") {
            vlan.set_priority(words.number("prio", 7)? as u8);
        }
        vlan.set_drop_eligible(words.eat("dei"));
        bytes.extend(vlan.0);
    }
    let explicit = if words.eat("type") { Some(words.u16("type")?) } else { None };
    let (implied, body) = body(words, depth)?;
    let kind = explicit.or(implied).ok_or("`hex` after `eth` wants `type N` before it")?;
    set_type_field(&mut bytes, kind);
    bytes.extend(body);
    Ok(bytes)
}

/// Sets the type field at the end of the last header.
fn set_type_field(bytes: &mut [u8], kind: u16) {
    if let Some(last) = bytes.last_chunk_mut::<2>() {
        *last = kind.to_be_bytes();
    }
}

/// Builds a packet from its network header on; returns its EtherType, if known, and its bytes.
fn body(words: &mut Words<'_>, depth: usize) -> Result<(Option<u16>, Vec<u8>), String> {
    match words.peek() {
        Some("hex") => {
            words.next();
            Ok((None, rest_as_hex(words)?))
        }
        Some("arp") => {
            words.next();
            Ok((Some(ether_type::ARP), arp_message(words)?))
        }
        Some(_) => {
            let packet = ip(words, depth)?;
            let v4 = packet.src.is_ipv4();
            let kind = if v4 { ether_type::IPV4 } else { ether_type::IPV6 };
            Ok((Some(kind), packet.build()?))
        }
        None => Err("a packet is missing".into()),
    }
}

fn rest_as_hex(words: &mut Words<'_>) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(word) = words.next() {
        bytes.extend(hex(word)?);
    }
    Ok(bytes)
}

fn arp_message(words: &mut Words<'_>) -> Result<Vec<u8>, String> {
    const IP: &str = "an IPv4 address";
    const MAC: &str = "an Ethernet address";
    let message = match words.next() {
        Some("who-has") => {
            let target: Ipv4Addr = words.value("who-has", IP)?;
            words.expect("tell")?;
            let sender = (words.value("tell", IP)?, words.value("tell", MAC)?);
            let mut message = Arp::request((sender.1, sender.0), target);
            if words.eat("target") {
                message.set_target_mac(words.value("target", MAC)?);
            }
            message
        }
        Some("reply") => {
            let ip: Ipv4Addr = words.value("reply", IP)?;
            words.expect("is-at")?;
            let mac: MacAddr = words.value("is-at", MAC)?;
            words.expect("to")?;
            let target: Ipv4Addr = words.value("to", IP)?;
            Arp::new(arp::REPLY, (mac, ip), (words.value("to", MAC)?, target))
        }
        Some("op") => {
            let operation = words.u16("op")?;
            words.expect("sender")?;
            let sender = (words.value("sender", IP)?, words.value("sender", MAC)?);
            words.expect("target")?;
            let target = (words.value("target", IP)?, words.value("target", MAC)?);
            Arp::new(operation, (sender.1, sender.0), (target.1, target.0))
        }
        _ => return Err("`arp` wants `who-has`, `reply` or `op`".into()),
    };
    let mut bytes = message.0.to_vec();
    if words.eat("pad") {
        bytes.resize(bytes.len() + words.number("pad", 0xffff)? as usize, 0);
    }
    match words.next() {
        Some(word) => Err(format!("unknown word `{word}`; after an ARP message stands pad N")),
        None => Ok(bytes),
    }
}

/// Parses `ADDR[:PORT]`; an IPv6 address with a port is `[ADDR]:PORT`.
fn endpoint(text: &str) -> Result<(IpAddr, u16), String> {
    let (addr, port) = if let Some(inner) = text.strip_prefix('[') {
        inner.split_once("]:").ok_or_else(|| format!("`{text}` is not `[ADDR]:PORT`"))?
    } else if text.matches(':').count() == 1 {
        text.split_once(':').unwrap_or((text, "0"))
    } else {
        (text, "0")
    };
    let addr = addr.parse().map_err(|_| {
        format!("`{addr}` is no IP address; a packet begins with one, or with eth, arp or hex")
    })?;
    let port = number(port).and_then(|n| u16::try_from(n).ok());
    Ok((addr, port.ok_or_else(|| format!("bad port in `{text}`"))?))
}

/// Parses a sketch of an IP packet to its end.
fn ip(words: &mut Words<'_>, depth: usize) -> Result<IpSpec, String> {
    let (src, sport) = endpoint(words.next().unwrap_or_default())?;
    words.expect(">")?;
    let (dst, dport) = endpoint(words.next().ok_or("`>` wants an address")?)?;
    let mut ip = IpSpec::new(src, dst);
    (ip.transport.sport, ip.transport.dport) = (sport, dport);
    while let Some(word) = words.next() {
        let known = protocol(&mut ip, word, words)?
            || network_word(&mut ip, word, words)?
            || transport_word(&mut ip, word, words)?
            || payload_word(&mut ip, word, words, depth)?;
        if !known {
            return Err(unknown(&ip, word));
        }
    }
    if (sport, dport) != (0, 0) && !matches!(ip.protocol, ip_proto::TCP | ip_proto::UDP) {
        return Err("only udp and tcp have ports".into());
    }
    Ok(ip)
}

/// The words behind the addresses, by the layer that accepts them.
pub(super) const PROTOCOLS: &str = "udp, tcp, icmp, icmp6, proto N";
pub(super) const IPV4: &str = "ttl N, tos N, id N, len N, df, rf, frag N[+], ipopt TEXT, iplen N, \
                               hl N, badsum, sum N, pad N, short N";
pub(super) const IPV6: &str =
    "hop N, class N, flow N, id N, frag N[+], len N, iplen N, pad N, short N";
pub(super) const UDP: &str = "ulen N, ";
pub(super) const TCP: &str = "seq N, ack [N], acknum N, fin, syn, rst, psh, urg, ece, cwr, \
                              flags SA, win N, urp N, off N, reserved N, tcpopt TEXT, ";
pub(super) const ICMP: &str = "type N, code N, ident N, seq N, rest N, ";
pub(super) const CHECKS: &str = "badcheck, check N, nocheck";
pub(super) const PAYLOADS: &str = "\"text\", data 0a0b, [PACKET]";

/// The error message of an unknown word, with a list of the known ones.
fn unknown(ip: &IpSpec, word: &str) -> String {
    let network = if ip.src.is_ipv4() { IPV4 } else { IPV6 };
    let (name, transport) = match ip.protocol {
        ip_proto::UDP => (" of UDP", UDP),
        ip_proto::TCP => (" of TCP", TCP),
        ip_proto::ICMP | ip_proto::ICMPV6 => (" of ICMP", ICMP),
        _ => ("", ""),
    };
    format!(
        "unknown word `{word}`; protocols: {PROTOCOLS}; words of IP: {network}; \
         words{name}: {transport}{CHECKS}; payload: {PAYLOADS}"
    )
}

/// Parses a word that names the protocol; returns `false` if `word` is no such word.
fn protocol(ip: &mut IpSpec, word: &str, words: &mut Words<'_>) -> Result<bool, String> {
    ip.protocol = match word {
        "udp" => ip_proto::UDP,
        "tcp" => ip_proto::TCP,
        "icmp" => ip_proto::ICMP,
        "icmp6" => ip_proto::ICMPV6,
        "proto" => words.u8(word)?,
        _ => return Ok(false),
    };
    Ok(true)
}

/// Parses a word of the network header; returns `false` if `word` is no such word.
fn network_word(ip: &mut IpSpec, word: &str, words: &mut Words<'_>) -> Result<bool, String> {
    match word {
        "ttl" | "hop" => ip.ttl = words.u8(word)?,
        "tos" | "class" => ip.tos = words.u8(word)?,
        "flow" if ip.src.is_ipv6() => ip.flow = words.number(word, 0xf_ffff)?,
        "len" => ip.len = Some(words.number(word, 0x1_0027)? as usize),
        "iplen" => ip.iplen = Some(words.u16(word)?),
        "pad" => ip.pad = words.number(word, 0xffff)? as usize,
        "short" => ip.short = words.number(word, 0x1_0027)? as usize,
        "df" | "rf" | "ipopt" | "hl" | "badsum" | "sum" if ip.src.is_ipv6() => {
            return Err(format!("IPv6 has no `{word}`"));
        }
        "id" if ip.src.is_ipv6() => {
            (ip.fragmented, ip.id) = (true, words.number(word, u32::MAX)?);
        }
        "id" => ip.id = words.u16(word)?.into(),
        "df" => ip.fragment |= Ipv4Header::DONT_FRAGMENT,
        "rf" => ip.fragment |= Ipv4Header::RESERVED_FLAG,
        "frag" => {
            let text = words.next().ok_or("`frag` wants an offset in bytes")?;
            let offset = number(text.trim_end_matches('+'));
            let offset = offset.filter(|n| n % 8 == 0 && *n < 65536).ok_or_else(|| {
                format!("`frag` wants a multiple of 8 below 65536, then perhaps `+`, not `{text}`")
            })?;
            let more = if text.ends_with('+') { Ipv4Header::MORE_FRAGMENTS } else { 0 };
            ip.fragment |= more | (offset / 8) as u16;
            ip.fragmented = ip.src.is_ipv6();
        }
        "ipopt" => ip.options = option_list(word, words, 40, parse_ip)?,
        "hl" => ip.hl = Some(words.number(word, 60)? as u8),
        "badsum" => ip.sum = ChecksumSpec::Incorrect,
        "sum" => ip.sum = ChecksumSpec::Value(words.u16(word)?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Parses options as text, or as bytes in hexadecimal, and pads them to a multiple
/// of four bytes.
fn option_list(
    word: &str,
    words: &mut Words<'_>,
    max: usize,
    parse: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<Vec<u8>, String> {
    let text = words.next().ok_or_else(|| format!("`{word}` wants options"))?;
    let list = match text.strip_prefix("0x") {
        Some(digits) => Some(hex(digits)?),
        None => parse(text),
    };
    let mut list = list
        .filter(|list| list.len() <= max)
        .ok_or_else(|| format!("`{word}` does not understand `{text}`"))?;
    list.resize(list.len().next_multiple_of(4), 0);
    Ok(list)
}

/// Parses a word of the transport header; returns `false` if `word` is no such word.
fn transport_word(ip: &mut IpSpec, word: &str, words: &mut Words<'_>) -> Result<bool, String> {
    let t = &mut ip.transport;
    match (word, ip.protocol) {
        ("badcheck", _) => t.check = ChecksumSpec::Incorrect,
        ("nocheck", _) => t.check = ChecksumSpec::Value(0),
        ("check", _) => t.check = ChecksumSpec::Value(words.u16(word)?),
        ("ulen", ip_proto::UDP) => t.ulen = Some(words.u16(word)?),
        (_, ip_proto::TCP) => return tcp_word(ip, word, words),
        (_, ip_proto::ICMP | ip_proto::ICMPV6) => return icmp_word(ip, word, words),
        _ => return Ok(false),
    }
    Ok(true)
}

fn tcp_word(ip: &mut IpSpec, word: &str, words: &mut Words<'_>) -> Result<bool, String> {
    let t = &mut ip.transport;
    match word {
        "seq" => t.seq = words.number(word, u32::MAX)?,
        "ack" => {
            t.flags |= flag::ACK;
            if words.peek().and_then(number).is_some() {
                t.ack = words.number(word, u32::MAX)?;
            }
        }
        "acknum" => t.ack = words.number(word, u32::MAX)?,
        "win" => t.window = Some(words.u16(word)?),
        "urp" => t.urgent = words.u16(word)?,
        "off" => t.off = Some(words.number(word, 60)? as u8),
        "reserved" => t.reserved = words.number(word, 15)? as u8,
        "tcpopt" => {
            t.options = option_list(word, words, 40, |text| parse_tcp(text, TcpOptionFilter::All))?;
        }
        "flags" => {
            for letter in words.next().unwrap_or_default().chars().filter(|c| *c != '.') {
                let bit = "FSRPAUEC".find(letter);
                t.flags |= 1 << bit.ok_or_else(|| format!("TCP has no flag `{letter}`"))?;
            }
        }
        _ => match FLAG_WORDS.iter().position(|name| *name == word) {
            Some(bit) => t.flags |= 1 << bit,
            None => return Ok(false),
        },
    }
    Ok(true)
}

/// The words of TCP's flags, from the lowest bit. The printer uses all but `ack`.
pub(super) const FLAG_WORDS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

fn icmp_word(ip: &mut IpSpec, word: &str, words: &mut Words<'_>) -> Result<bool, String> {
    let v4 = ip.protocol == ip_proto::ICMP;
    let t = &mut ip.transport;
    match word {
        "type" => {
            let text = words.next().unwrap_or_default();
            let kind = if v4 { names::icmp_type_number(text) } else { text.parse().ok() };
            t.kind = Some(kind.ok_or_else(|| format!("`{text}` is not an ICMP type"))?);
        }
        "code" => {
            let text = words.next().unwrap_or_default();
            let code = names::icmp_code_number(if v4 { t.kind.unwrap_or(0) } else { 0 }, text);
            t.code = code.ok_or_else(|| format!("`{text}` is not a code of this ICMP type"))?;
        }
        "ident" => t.rest = t.rest & 0xffff | u32::from(words.u16(word)?) << 16,
        "seq" => t.rest = t.rest & !0xffff | u32::from(words.u16(word)?),
        "rest" => t.rest = words.number(word, u32::MAX)?,
        // `icmp echo`, `icmp timeexceeded` … without `type`.
        name if v4 && t.kind.is_none() && !name.starts_with(|c: char| c.is_ascii_digit()) => {
            t.kind = names::icmp_type_number(name);
            return Ok(t.kind.is_some());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn payload_word(
    ip: &mut IpSpec,
    word: &str,
    words: &mut Words<'_>,
    depth: usize,
) -> Result<bool, String> {
    if word.starts_with('"') {
        ip.payload.extend(unquote(word)?);
    } else if word == "data" {
        ip.payload.extend(hex(words.next().ok_or("`data` wants hexadecimal digits")?)?);
    } else if let Some(inner) = word.strip_prefix('[').and_then(|w| w.strip_suffix(']')) {
        let depth = depth.checked_sub(1).ok_or("too many packets within packets")?;
        ip.payload.extend(packet(inner, depth)?.bytes);
    } else {
        return Ok(false);
    }
    Ok(true)
}
