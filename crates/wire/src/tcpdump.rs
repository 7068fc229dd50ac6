//! Parser of tcpdump's text output, of old and new versions.
//!
//! ```text
//! 1000000000.5 10.0.0.1.1024 > 10.0.0.2.80: S 1:1(0) win 512 <mss 1460> (DF) (ttl 64, id 7)
//! 12:00:00.500000 IP 10.0.0.1.53 > 10.0.0.2.99: UDP, length 40
//! ```
//!
//! A line is converted into the fields of a summary dump, from which the packet is built.

use crate::ip_proto;
use crate::summary::{Defaults, Field, ParsedPacket, parse_line};
use std::collections::HashMap;
use std::net::Ipv4Addr;

/// Acknowledgment numbers up to this one are assumed to be relative to the connection's first.
const MAX_RELATIVE: u32 = 8000;

/// Ports that tcpdump prints by name unless it runs with `-n`.
const SERVICES: [(&str, u16); 22] = [
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("http", 80),
    ("www", 80),
    ("pop3", 110),
    ("sunrpc", 111),
    ("auth", 113),
    ("nntp", 119),
    ("ntp", 123),
    ("netbios-ns", 137),
    ("netbios-dgm", 138),
    ("netbios-ssn", 139),
    ("imap2", 143),
    ("snmp", 161),
    ("https", 443),
];

/// The endpoint of a connection: its address and port.
type Endpoint = (Ipv4Addr, u16);

/// Sequence numbers of one direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct DirectionState {
    /// The first sequence number, to which others are relative.
    first: u32,
    /// The sequence number after the last byte.
    next: u32,
}

/// Reads the lines of a file in order: relative sequence numbers depend on earlier
/// lines of the connection.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// Both directions of each connection; the key and the array have the lesser endpoint
    /// first.
    flows: HashMap<(Endpoint, Endpoint), [DirectionState; 2]>,
    /// Whether sequence numbers are absolute; `None` until a line shows it.
    absolute: Option<bool>,
    /// Whether to set checksums.
    checksum: bool,
}

/// The summary dump fields of one line.
#[derive(Default)]
struct LineFields {
    fields: Vec<Field>,
    words: Vec<String>,
    payload: Option<u32>,
    total: Option<u32>,
}

impl LineFields {
    fn set(&mut self, field: Field, word: impl ToString) {
        self.fields.push(field);
        self.words.push(word.to_string());
    }
}

/// The parsed fields of a TCP header, with possibly relative sequence numbers.
#[derive(Default)]
struct Segment {
    flags: String,
    seq: u32,
    end: u32,
    ack: Option<u32>,
    sacks: Vec<(u32, u32)>,
    options: Vec<String>,
}

impl Reader {
    /// Makes a reader. `checksum`: whether packets get checksums, instead of zeros.
    pub fn new(checksum: bool) -> Reader {
        Reader { checksum, ..Reader::default() }
    }

    /// Whether a file with this first line is probably tcpdump's output.
    pub fn is_first_line(line: &str) -> bool {
        line.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Parses a line; `None` if it is empty or a comment.
    pub fn line(&mut self, text: &str) -> Result<Option<ParsedPacket>, String> {
        let text = text.trim_end();
        if text.is_empty() || text.starts_with('#') {
            return Ok(None);
        }
        let line = self.fields(text).ok_or("packet parse error")?;
        let defaults = Defaults { checksum: self.checksum, ..Defaults::default() };
        parse_line(&line.fields, &line.words.join(" "), &defaults).map(Some)
    }

    /// Converts a line into fields of a summary dump.
    fn fields(&mut self, text: &str) -> Option<LineFields> {
        let mut line = LineFields::default();
        let (time, rest) = text.split_once(' ')?;
        line.set(Field::Timestamp, timestamp(time)?);
        let rest = rest.strip_prefix("IP ").unwrap_or(rest);
        let (src, rest) = rest.split_once(" > ")?;
        let (dst, rest) = rest.split_once(':')?;
        let rest = rest.trim_start();
        let protocol = protocol(rest);
        let (src, dst) = (endpoint(src, protocol)?, endpoint(dst, protocol)?);
        for (field, addr) in [(Field::IpSrc, src.0), (Field::IpDst, dst.0)] {
            line.set(field, addr);
        }
        line.set(Field::IpProto, protocol);
        line.set(Field::IpTtl, 2);
        if matches!(protocol, ip_proto::TCP | ip_proto::UDP) {
            line.set(Field::Sport, src.1);
            line.set(Field::Dport, dst.1);
        }
        match protocol {
            ip_proto::TCP => {
                let segment = segment(rest, &mut line)?;
                self.add_segment(segment, src, dst, &mut line);
            }
            ip_proto::UDP => line.payload = udp_length(rest),
            _ => {}
        }
        parse_trailer(rest, &mut line);
        if let Some(length) = line.total {
            line.set(Field::IpLen, length);
        }
        if let Some(length) = line.payload {
            line.set(Field::PayloadLen, length);
        }
        Some(line)
    }

    /// Converts relative sequence numbers into absolute ones, and adds the TCP fields to `line`.
    fn add_segment(
        &mut self,
        mut segment: Segment,
        src: Endpoint,
        dst: Endpoint,
        line: &mut LineFields,
    ) {
        let sender = usize::from(src > dst);
        let syn = segment.flags.contains('S');
        if let Some(ack) = &mut segment.ack {
            let flow = self.flows.entry((src.min(dst), src.max(dst))).or_default();
            let known = flow[0].first != 0 || flow[1].first != 0;
            if syn || !known {
                flow[sender].first = segment.seq;
                flow[1 - sender].first = ack.wrapping_sub(1);
            } else {
                let after = ack.wrapping_sub(flow[1 - sender].first) as i32 >= 0;
                let absolute = *self.absolute.get_or_insert(after && *ack > MAX_RELATIVE);
                if segment.seq == 0 && segment.end == 0 {
                    (segment.seq, segment.end) = (flow[sender].next, flow[sender].next);
                } else if !absolute {
                    segment.seq = segment.seq.wrapping_add(flow[sender].first);
                    segment.end = segment.end.wrapping_add(flow[sender].first);
                }
                if !absolute {
                    let base = flow[1 - sender].first;
                    *ack = ack.wrapping_add(base);
                    for (from, to) in &mut segment.sacks {
                        (*from, *to) = (from.wrapping_add(base), to.wrapping_add(base));
                    }
                }
            }
            let syn_fin = u32::from(syn) + u32::from(segment.flags.contains('F'));
            flow[sender].next = segment.end.wrapping_add(syn_fin);
            if flow[1 - sender].next == 0 {
                flow[1 - sender].next = *ack;
            }
        }
        line.set(Field::TcpSeq, segment.seq);
        line.set(Field::TcpAck, segment.ack.unwrap_or(0));
        let flags = if segment.flags.is_empty() { "." } else { &segment.flags };
        line.set(Field::TcpFlags, flags);
        let sacks = segment.sacks.iter().map(|(from, to)| format!("sack{from}-{to}"));
        let options: Vec<String> = segment.options.into_iter().chain(sacks).collect();
        if !options.is_empty() {
            line.set(Field::TcpOpt, options.join(";"));
        }
    }
}

/// Parses a time: seconds since 1970, or the time of day, as seconds since midnight.
fn timestamp(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(':').collect();
    let [hours, minutes, seconds] = parts.as_slice() else {
        return text.parse::<f64>().is_ok().then(|| text.to_owned());
    };
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let number = |text: &str| text.parse::<u32>().ok();
    let total = (number(hours)? * 60 + number(minutes)?) * 60 + number(whole)?;
    Some(format!("{total}.{fraction}"))
}

/// The protocol, by the text behind the addresses; 0 if unknown.
fn protocol(rest: &str) -> u8 {
    let begins = |word: &str| rest.get(..word.len()).is_some_and(|b| b.eq_ignore_ascii_case(word));
    let flags = rest.split(' ').next().unwrap_or_default();
    match () {
        () if begins("icmp") => ip_proto::ICMP,
        () if begins("udp") || begins("[udp") || begins("[bad udp") => ip_proto::UDP,
        () if begins("Flags [") => ip_proto::TCP,
        () if !flags.is_empty() && flags.chars().all(|c| "SFRPUEWXY.".contains(c)) => ip_proto::TCP,
        // Decoded protocols such as DNS begin with a number.
        () if rest.starts_with(|c: char| c.is_ascii_digit()) => ip_proto::UDP,
        () => 0,
    }
}

/// Parses `10.0.0.1.80`, `10.0.0.1.http` or, without ports, `10.0.0.1`.
fn endpoint(text: &str, protocol: u8) -> Option<Endpoint> {
    if let Ok(addr) = text.parse() {
        return Some((addr, 0));
    }
    if !matches!(protocol, ip_proto::TCP | ip_proto::UDP) {
        return None;
    }
    let (addr, port) = text.rsplit_once(['.', ':'])?;
    let named = || SERVICES.iter().find(|(name, _)| *name == port).map(|(_, port)| *port);
    Some((addr.parse().ok()?, port.parse().ok().or_else(named)?))
}

/// The number at the start of `text`, and the text behind it.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// The number behind the separate word `word` and a space.
fn number_after(text: &str, word: &str) -> Option<u32> {
    let at = text.match_indices(word).map(|(at, _)| at).find(|&at| {
        let free = at == 0 || text[..at].ends_with([' ', ',', '(', '[']);
        free && text[at + word.len()..].starts_with(' ')
    })?;
    number(text[at + word.len()..].trim_start()).map(|(value, _)| value)
}

/// Parses the description of a TCP segment.
fn segment(rest: &str, line: &mut LineFields) -> Option<Segment> {
    let mut it = Segment::default();
    let (flags, rest) = match rest.strip_prefix("Flags [") {
        Some(rest) => rest.split_once(']')?,
        None => rest.split_once(' ').unwrap_or((rest, "")),
    };
    it.flags = flags.chars().filter(|&c| c != '.' && c != 'n' && c != 'o').collect();
    it.flags = it.flags.replace("e", "");
    let options = rest.find(['<', '[']).map(|at| &rest[at..]).filter(|_| has_options(rest));
    let plain = options.map_or(rest, |options| &rest[..rest.len() - options.len()]);
    // `1:101(100)`, or `seq 1:101`, or `seq 1`.
    let word = |word: &&str| word.contains(':') && word.starts_with(|c: char| c.is_ascii_digit());
    let range = plain.split([' ', ',']).find(word).and_then(|word| {
        let (from, rest) = number(word)?;
        Some((from, number(rest.strip_prefix(':')?)?.0))
    });
    let single = number_after(plain, "seq").map(|seq| (seq, seq));
    (it.seq, it.end) = range.or(single).unwrap_or_default();
    it.ack = number_after(plain, "ack");
    if it.ack.is_some() || flags.contains('.') {
        it.flags.push('A');
        it.ack.get_or_insert(0);
    }
    for (word, field) in [("win", Field::TcpWindow), ("urg", Field::TcpUrp)] {
        if let Some(value) = number_after(plain, word) {
            line.set(field, value.min(u16::MAX.into()));
        }
    }
    line.payload = Some(number_after(rest, "length").unwrap_or(it.end.wrapping_sub(it.seq)));
    let list = options.and_then(|text| text[1..].split_once(['>', ']'])).map(|(list, _)| list);
    list.unwrap_or_default().split(',').for_each(|option| add_option(option.trim(), &mut it));
    Some(it)
}

/// Whether a bracket begins options, instead of other fields such as `[tos 0x10]`.
fn has_options(rest: &str) -> bool {
    rest.contains("options [") || rest.contains('<')
}

/// Adds an option in the format of summary dumps.
fn add_option(text: &str, segment: &mut Segment) {
    let numbers: Vec<u32> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    let word = text.split([' ', ',']).next().unwrap_or_default();
    let (kind, options) = (word.to_ascii_lowercase(), &mut segment.options);
    match (kind.as_str(), numbers.as_slice()) {
        ("mss", [size, ..]) => options.push(format!("mss{size}")),
        ("wscale", [shift, ..]) => options.push(format!("wscale{shift}")),
        ("sackok", _) => options.push("sackok".into()),
        ("timestamp" | "ts", [value, echo, ..]) => options.push(format!("ts{value}:{echo}")),
        ("nop" | "eol", _) => options.push(kind),
        ("sack", [_, blocks @ ..]) => {
            segment.sacks.extend(blocks.chunks_exact(2).map(|block| (block[0], block[1])));
        }
        _ => {}
    }
}

/// Parses `udp 40`, `UDP, length 40`, or the length in brackets behind DNS messages.
fn udp_length(rest: &str) -> Option<u32> {
    let bracket = || {
        let inner = rest.strip_suffix(')')?.rsplit_once('(')?.1;
        inner.parse().ok()
    };
    number_after(rest, "udp").or_else(|| number_after(rest, "length")).or_else(bracket)
}

/// Parses the IP fields in brackets at the end: `(ttl 64, id 7, len 60)`, `[tos 0x10]`,
/// `(DF)`, `(frag 7:100@200+)`.
fn parse_trailer(rest: &str, line: &mut LineFields) {
    for (word, field) in [("ttl", Field::IpTtl), ("id", Field::IpId)] {
        if let Some(value) = number_after(rest, word) {
            line.set(field, value);
        }
    }
    if let Some((_, tos)) = rest.split_once("tos 0x") {
        let digits = tos.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(tos.len());
        line.set(Field::IpTos, u8::from_str_radix(&tos[..digits], 16).unwrap_or(0));
    }
    for (word, name) in [("ECT(0)", "ect2"), ("ECT(1)", "ect1"), (" CE", "ce"), (",CE", "ce")] {
        if rest.contains(word) {
            line.set(Field::IpEcn, name);
        }
    }
    let fragment = rest.split_once("(frag ").and_then(|(_, text)| {
        let (id, text) = number(text)?;
        let (length, text) = number(text.strip_prefix(':')?)?;
        let (offset, text) = number(text.strip_prefix('@')?)?;
        Some((id, length, offset, if text.starts_with('+') { "+" } else { "" }))
    });
    if let Some((id, length, offset, more)) = fragment {
        line.set(Field::IpId, id);
        line.set(Field::IpFragoff, format!("{offset}{more}"));
        line.payload = Some(length);
    } else if rest.contains("(DF)") || rest.contains("[DF]") {
        line.set(Field::IpFrag, "!");
    }
    line.total = number_after(rest, "len");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ipv4Header, Tcp, Udp};

    fn read(reader: &mut Reader, line: &str) -> ParsedPacket {
        reader.line(line).unwrap().unwrap()
    }

    fn tcp_of(parsed: &ParsedPacket) -> (Ipv4Header, Tcp, Vec<u8>) {
        let (ip, rest) = Ipv4Header::from_prefix(&parsed.bytes).unwrap();
        let (tcp, rest) = Tcp::from_prefix(rest).unwrap();
        (*ip, *tcp, rest.to_vec())
    }

    #[test]
    fn an_old_line_with_all_fields() {
        let line = "1000000000.25 10.0.0.1.1024 > 10.0.0.2.http: S 7:7(0) win 512 \
                    <mss 1460,nop,wscale 3,sackOK,timestamp 5 6> (DF) [tos 0x10] (ttl 64, id 9)";
        let parsed = read(&mut Reader::new(true), line);
        let (ip, tcp, options) = tcp_of(&parsed);
        assert_eq!(parsed.meta.timestamp.0, 1_000_000_000_250_000_000);
        assert_eq!((ip.ttl(), ip.id(), ip.tos(), ip.fragment_word()), (64, 9, 16, 0x4000));
        assert_eq!((tcp.src_port(), tcp.dst_port(), tcp.seq(), tcp.window()), (1024, 80, 7, 512));
        assert!(tcp.is_syn() && !tcp.is_ack());
        assert_eq!(options[..4], [2, 4, 5, 0xb4]);
        assert_eq!(usize::from(ip.total_len()), parsed.bytes.len());
        assert!(ip.checksum_ok(&[]));
    }

    #[test]
    fn relative_numbers_become_absolute() {
        let mut reader = Reader::new(false);
        let seqs = [
            ("1.0 10.0.0.1.1 > 10.0.0.2.2: S 1000:1000(0) win 5", (1000, 0)),
            ("1.1 10.0.0.2.2 > 10.0.0.1.1: S 5000:5000(0) ack 1001 win 5", (5000, 1001)),
            ("1.2 10.0.0.1.1 > 10.0.0.2.2: . ack 1 win 5", (1001, 5001)),
            ("1.3 10.0.0.1.1 > 10.0.0.2.2: P 1:101(100) ack 1 win 5", (1001, 5001)),
            ("1.4 10.0.0.2.2 > 10.0.0.1.1: . ack 101 win 5", (5001, 1101)),
        ];
        for (line, want) in seqs {
            let (_, tcp, _) = tcp_of(&read(&mut reader, line));
            assert_eq!((tcp.seq(), tcp.ack()), want, "{line}");
        }
    }

    #[test]
    fn lines_of_new_versions() {
        let mut reader = Reader::new(false);
        let line = "12:00:01.5 IP 10.0.0.1.443 > 10.0.0.2.50000: Flags [P.], seq 1:11, ack 2, \
                    win 99, options [nop,nop,TS val 7 ecr 8], length 10";
        let parsed = read(&mut reader, line);
        let (ip, tcp, options) = tcp_of(&parsed);
        assert_eq!(parsed.meta.timestamp.0, 43_201_500_000_000);
        assert_eq!((tcp.src_port(), tcp.seq(), tcp.ack(), tcp.window()), (443, 1, 2, 99));
        assert!(tcp.is_ack() && !tcp.is_syn());
        assert_eq!(options[..6], [1, 1, 8, 10, 0, 0]);
        assert_eq!((ip.total_len(), parsed.meta.extra_length), (62, 10));
        let line = "12:00:01.5 IP 10.0.0.1.53 > 10.0.0.2.99: UDP, length 40";
        let parsed = read(&mut reader, line);
        let (ip, rest) = Ipv4Header::from_prefix(&parsed.bytes).unwrap();
        let (udp, _) = Udp::from_prefix(rest).unwrap();
        assert_eq!((ip.protocol(), ip.total_len(), udp.length()), (17, 68, 48));
        let line = "12:00:01.5 IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 1, seq 1, length 64";
        assert_eq!(read(&mut reader, line).bytes[9], ip_proto::ICMP);
    }

    #[test]
    fn fragments_and_invalid_lines() {
        let mut reader = Reader::new(false);
        let parsed = read(&mut reader, "1.0 10.0.0.1 > 10.0.0.2: (frag 7:100@1480+)");
        let (ip, _) = Ipv4Header::from_prefix(&parsed.bytes).unwrap();
        assert_eq!((ip.id(), ip.fragment_word(), ip.total_len()), (7, 0x20b9, 120));
        assert_eq!(reader.line("# a remark").unwrap(), None);
        assert_eq!(reader.line("").unwrap(), None);
        for bad in ["1.0 arp who-has 1.0.0.1", "x", "1.0 a > b: .", "1.0 10.0.0.1.1 > ", "1 2 > 3"]
        {
            assert!(reader.line(bad).is_err(), "{bad}");
        }
        assert!(Reader::is_first_line("12:00") && !Reader::is_first_line("tcpdump: listening"));
    }
}
