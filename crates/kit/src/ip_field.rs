//! Fields of IP packets by name, for `AggregateIP`.
//!
//! A field is written as `ip src/8`, `ip[8:2] & 0x3f0`, `tcp{106-111}`, `ip src[1]` or `data[0]`: a
//! header, a named field of it or none, a position in these in bytes or bits, and a mask.

use crate::classify::{ANY_TRANSPORT, PROTOCOLS, TCP_OR_UDP};
use castanet_wire::{Ipv4Header, Tcp, ip_proto};

/// The header that a field's position is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    /// The IP header.
    Ip,
    /// The transport header.
    Transport,
    /// The payload after the header of TCP or UDP.
    Payload,
}

/// Bits of a header, all in one word of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpField {
    /// The protocol that has the field, which may be [`TCP_OR_UDP`] or [`ANY_TRANSPORT`]; 0 for IP.
    protocol: u32,
    /// The header that the position is relative to.
    header: Header,
    /// The first bit.
    pub bit_offset: u32,
    /// The number of bits, at most 32.
    pub bit_length: u32,
}

/// An error in the text of a field, in Castanet's words and in Click's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Castanet's words.
    pub message: String,
    /// Click's words.
    pub click: &'static str,
}

const SYNTAX: &str = "expected 'HEADER [NAME] [{OFFSET:LENGTH}] [/PREFIX] [& MASK]'";
const POSITION: &str = "bad offset or length in TCP/IP field";
const MASK: &str = "bad prefix or mask in TCP/IP field";

/// The largest bit offset.
const MAX_BIT_OFFSET: u32 = 8 * u16::MAX as u32;
/// TCP and UDP, as numbers of [`PROTOCOLS`].
const TCP: u32 = ip_proto::TCP as u32;
const UDP: u32 = ip_proto::UDP as u32;
const ICMP: u32 = ip_proto::ICMP as u32;

/// Protocol, name, first bit, number of bits. Of two names the first is shown.
const FIELDS: &[(u32, &str, u32, u32)] = &[
    (0, "vers", 0, 4),
    (0, "hl", 4, 4),
    (0, "tos", 8, 8),
    (0, "dscp", 8, 6),
    (0, "ecn", 14, 2),
    (0, "len", 16, 16),
    (0, "id", 32, 16),
    (0, "off", 48, 16),
    (0, "rf", 48, 1),
    (0, "df", 49, 1),
    (0, "mf", 50, 1),
    (0, "fragoff", 51, 13),
    (0, "ttl", 64, 8),
    (0, "proto", 72, 8),
    (0, "sum", 80, 16),
    (0, "src", 96, 32),
    (0, "dst", 128, 32),
    (UDP, "sport", 0, 16),
    (UDP, "dport", 16, 16),
    (UDP, "len", 32, 16),
    (UDP, "sum", 48, 16),
    (TCP, "sport", 0, 16),
    (TCP, "dport", 16, 16),
    (TCP, "seq", 32, 32),
    (TCP, "seqno", 32, 32),
    (TCP, "ackno", 64, 32),
    (TCP, "hl", 96, 4),
    (TCP, "flags", 104, 8),
    (TCP, "urg", 106, 1),
    (TCP, "ack", 107, 1),
    (TCP, "psh", 108, 1),
    (TCP, "push", 108, 1),
    (TCP, "rst", 109, 1),
    (TCP, "syn", 110, 1),
    (TCP, "fin", 111, 1),
    (TCP, "win", 112, 16),
    (TCP, "sum", 128, 16),
    (TCP, "urp", 144, 16),
    (ICMP, "type", 0, 8),
    (ICMP, "code", 8, 8),
    (ICMP, "sum", 16, 16),
    (TCP_OR_UDP, "sport", 0, 16),
    (TCP_OR_UDP, "dport", 16, 16),
];

/// The protocol and the header that a word stands for.
fn header(word: &str) -> Option<(u32, Header)> {
    Some(match word {
        "ip" => (0, Header::Ip),
        "data" | "payload" => (TCP_OR_UDP, Header::Payload),
        "ports" => (TCP_OR_UDP, Header::Transport),
        _ => {
            let &(_, protocol) = PROTOCOLS.iter().find(|(name, _)| *name == word)?;
            (protocol, Header::Transport)
        }
    })
}

fn error(click: &'static str, message: impl Into<String>) -> FieldError {
    FieldError { message: message.into(), click }
}

fn parse_number(text: &str, click: &'static str) -> Result<u32, FieldError> {
    let text = text.trim();
    let value = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    value.map_err(|_| error(click, format!("'{text}' is not a number")))
}

impl IpField {
    /// Parses a field and its mask.
    pub fn parse(text: &str) -> Result<IpField, FieldError> {
        let text = text.trim();
        let end = text.find(['/', '&']).unwrap_or(text.len());
        let (place, mask) = text.split_at(end);
        let (name, position) = place.split_at(place.find(['[', '{']).unwrap_or(place.len()));
        let mut field = IpField::parse_name(name.trim(), position.trim())?;
        field.apply_mask(mask)?;
        if field.bit_length == 0 {
            return Err(error(POSITION, "field has no bits"));
        }
        let last = field.bit_offset + field.bit_length - 1;
        if field.bit_offset / 32 != last / 32 {
            let click = "field specification does not fit within a single word";
            return Err(error(click, "field crosses a boundary of 32 bits"));
        }
        Ok(field)
    }

    /// Parses a header, a named field or a position in it, or a position in a named field.
    fn parse_name(text: &str, position: &str) -> Result<IpField, FieldError> {
        let unknown = |kind| error(SYNTAX, format!("unknown {kind} '{text}'"));
        let words: Vec<&str> = text.split_whitespace().collect();
        let (of, name) = match words.as_slice() {
            ["ip", "proto", number, name @ ..] if number.parse::<u8>().is_ok() => {
                let protocol = parse_number(number, SYNTAX)?;
                (Some((protocol, Header::Transport)), name.first().copied())
            }
            [name @ ("sport" | "dport")] => (header("ports"), Some(*name)),
            [of] => (header(of), None),
            ["ip", name @ ("sport" | "dport")] => (header("ports"), Some(*name)),
            [of, name] => (header(of), Some(*name)),
            _ => return Err(error(SYNTAX, format!("'{text}' is not a field"))),
        };
        let (protocol, header) = of.ok_or_else(|| unknown("header"))?;
        let Some(name) = name else {
            let all = IpField { protocol, header, bit_offset: 0, bit_length: u32::MAX };
            return all.part(position);
        };
        let known = FIELDS.iter().find(|entry| (entry.0, entry.1) == (protocol, name));
        let &(_, _, bit_offset, bit_length) = known.ok_or_else(|| unknown("field"))?;
        let field = IpField { protocol, header, bit_offset, bit_length };
        if position.is_empty() { Ok(field) } else { field.part(position) }
    }

    /// The part of the field at `[OFFSET:LENGTH]`, `[FIRST-LAST]`, `[OFFSET]`, or the same in bits.
    fn part(self, position: &str) -> Result<IpField, FieldError> {
        let inner = |open, close| position.strip_prefix(open)?.strip_suffix(close);
        let (inner, unit) = match (inner('[', ']'), inner('{', '}')) {
            (Some(inner), _) => (inner, 8),
            (_, Some(inner)) => (inner, 1),
            _ if position.is_empty() => return Err(error(SYNTAX, "no field of the header")),
            _ => return Err(error(SYNTAX, format!("'{position}' does not end"))),
        };
        let number = |text| parse_number(text, SYNTAX);
        let far = || error(POSITION, "too far from the start");
        let (offset, length) = if let Some((offset, length)) = inner.split_once([':', ',']) {
            (number(offset)?, number(length)?)
        } else if let Some((first, last)) = inner.split_once('-') {
            let (first, last) = (number(first)?, number(last)?);
            let end = last.checked_add(1).ok_or_else(far)?;
            let order = || error(POSITION, "last comes before first");
            (first, end.checked_sub(first).ok_or_else(order)?)
        } else {
            (number(inner)?, 1)
        };
        let bits = |n: u32| n.checked_mul(unit).filter(|&bits| bits <= MAX_BIT_OFFSET);
        let (offset, bit_length) = bits(offset).zip(bits(length)).ok_or_else(far)?;
        if offset + bit_length > self.bit_length {
            return Err(error(POSITION, "reaches beyond the field"));
        }
        Ok(IpField { bit_offset: self.bit_offset + offset, bit_length, ..self })
    }

    /// Applies `/NUM`, the leading bits, or `& MASK`, contiguous ones.
    fn apply_mask(&mut self, mask: &str) -> Result<(), FieldError> {
        if let Some(bits) = mask.strip_prefix('/') {
            let bits = parse_number(bits, SYNTAX)?;
            if bits > self.bit_length {
                return Err(error(MASK, format!("/{bits} is longer than the field")));
            }
            self.bit_length = bits;
        } else if let Some(ones) = mask.strip_prefix('&') {
            let ones = parse_number(ones, SYNTAX)?;
            let (low, count) = (ones.trailing_zeros(), ones.count_ones());
            let contiguous = ones != 0 && u64::from(ones >> low) == (1u64 << count) - 1;
            if !contiguous || low + count > self.bit_length {
                return Err(error(MASK, "mask must be ones without a hole, within the field"));
            }
            self.bit_offset += self.bit_length - low - count;
            self.bit_length = count;
        }
        Ok(())
    }

    /// The name of the header: `ip`, `tcp` or `ip proto 200`.
    pub fn header_name(&self) -> String {
        match self.header {
            Header::Ip => "ip".to_owned(),
            Header::Payload => "data".to_owned(),
            Header::Transport => match PROTOCOLS.iter().find(|(_, n)| *n == self.protocol) {
                Some((name, _)) => (*name).to_owned(),
                None => format!("ip proto {}", self.protocol),
            },
        }
    }

    /// The name of the field of this header with exactly these bits.
    fn name_of(&self, bit_offset: u32, bit_length: u32) -> Option<&'static str> {
        let bits = (self.protocol, bit_offset, bit_length);
        let known = FIELDS.iter().filter(|_| self.header != Header::Payload);
        known.clone().find(|it| (it.0, it.2, it.3) == bits).map(|it| it.1)
    }

    /// The field as Click writes it: by its name or that of an octet, half word or word around it.
    pub fn canonical(&self) -> String {
        let header = self.header_name();
        let (mut at, bits) = (self.bit_offset, self.bit_length);
        if let Some(name) = self.name_of(at, bits) {
            return format!("{header} {name}");
        }
        let holds = |&size: &u32| at / size == (at + bits - 1) / size;
        let named = |size: u32| Some((size, self.name_of(at & !(size - 1), size)?));
        let around = [8, 16, 32].into_iter().filter(holds).find_map(named);
        let mut text = header;
        if let Some((size, name)) = around {
            text = format!("{text} {name}");
            at &= size - 1;
            if at == 0 {
                return format!("{text}/{bits}");
            }
        }
        match (at % 8, bits % 8) {
            (0, 0) if bits == 8 => format!("{text}[{}]", at / 8),
            (0, 0) => format!("{text}[{}:{}]", at / 8, bits / 8),
            _ if bits == 1 => format!("{text}{{{at}}}"),
            _ => format!("{text}{{{at}:{bits}}}"),
        }
    }

    /// The shift that moves the field to its position in an address, if it lies within the source
    /// or the destination address.
    pub fn address_shift(&self) -> Option<u32> {
        let within = |first: u32| {
            let end = self.bit_offset + self.bit_length;
            self.bit_offset >= first && end <= first + 32
        };
        let first = [96, 128].into_iter().find(|&first| within(first))?;
        (self.header == Header::Ip).then_some(32 - (self.bit_offset - first) - self.bit_length)
    }

    /// The field's value in a datagram; `None` if the datagram does not have the field.
    pub fn value(&self, datagram: &[u8]) -> Option<u32> {
        let (ip, _) = Ipv4Header::from_prefix(datagram)?;
        let of_ports = matches!(ip.protocol(), ip_proto::TCP | ip_proto::UDP);
        let is_it = match self.protocol {
            0 | ANY_TRANSPORT => true,
            TCP_OR_UDP => of_ports,
            protocol => protocol == u32::from(ip.protocol()),
        };
        if !is_it {
            return None;
        }
        let transport = || datagram.get(ip.header_len()..).filter(|_| ip.is_first_fragment());
        bits(
            match self.header {
                Header::Ip => datagram,
                Header::Transport => transport()?,
                Header::Payload => {
                    let bytes = transport()?;
                    let head = match ip.protocol() {
                        ip_proto::TCP => Tcp::from_prefix(bytes)?.0.header_len(),
                        _ => castanet_wire::Udp::LEN,
                    };
                    bytes.get(head..)?
                }
            },
            self.bit_offset,
            self.bit_length,
        )
    }
}

/// Bits of one word of `bytes`, most significant first. `None` if the word is not complete, as in
/// Click.
fn bits(bytes: &[u8], offset: u32, length: u32) -> Option<u32> {
    let word = bytes.get((offset / 32 * 4) as usize..)?.first_chunk()?;
    Some((u32::from_be_bytes(*word) << (offset % 32)) >> (32 - length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A datagram from 1.2.3.4 to 6.7.8.9 with these bytes after the header.
    fn datagram(protocol: u8, rest: &[u8]) -> Vec<u8> {
        let total = 20 + rest.len() as u8;
        let head =
            [0x45, 0xb9, 0, total, 0xab, 0xcd, 0x40, 0, 64, protocol, 0, 0, 1, 2, 3, 4, 6, 7, 8, 9];
        [&head[..], rest].concat()
    }

    fn value(field: &str, datagram: &[u8]) -> Option<u32> {
        IpField::parse(field).unwrap_or_else(|e| panic!("{field}: {e:?}")).value(datagram)
    }

    #[test]
    fn equivalent_forms_of_a_field() {
        let packet = datagram(17, &[0, 5, 0, 10, 0, 8, 0, 0]);
        for field in [
            "ip src/8",
            "ip src & 0xFF000000",
            "ip[12]",
            "ip[12, 1]",
            "ip{96, 8}",
            "ip{96-103}",
            "ip src[0]",
            "ip src{0:8}",
        ] {
            let it = IpField::parse(field).unwrap();
            assert_eq!((it.bit_offset, it.bit_length), (96, 8), "{field}");
            assert_eq!((it.value(&packet), it.address_shift()), (Some(1), Some(24)), "{field}");
            assert_eq!(it.canonical(), "ip src/8", "{field}");
        }
    }

    #[test]
    fn fields_are_found() {
        let udp = datagram(17, &[0, 5, 0, 10, 0, 12, 0, 0, 0xde, 0xad, 0xbe, 0xef]);
        for (field, expected) in [
            ("ip vers", Some(4)),
            ("ip hl", Some(5)),
            ("ip dscp", Some(0x2e)),
            ("ip ecn", Some(1)),
            ("ip df", Some(1)),
            ("ip fragoff", Some(0)),
            ("ip proto", Some(17)),
            ("ip dst", Some(0x0607_0809)),
            ("udp dport", Some(10)),
            ("sport", Some(5)),
            ("transp[4:2]", Some(12)),
            ("data[1-2]", Some(0xadbe)),
            ("ip src[1]", Some(2)),
            ("tcpudp sport", Some(5)),
            ("ip dport", Some(10)),
            ("ip proto 17[2:2]", Some(10)),
            ("ip proto 6[2:2]", None),
            ("ip proto", Some(17)),
            ("gre[1]", None),
            ("igmp[0]", None),
            ("data[0:4]", Some(0xdead_beef)),
            ("ip[4:2] & 0x3F0", Some(0x3c)),
            ("tcp sport", None),
            ("icmp type", None),
            ("data[4]", None),
        ] {
            assert_eq!(value(field, &udp), expected, "{field}");
        }
        let mut later = datagram(17, &[1; 8]);
        later[7] = 1;
        assert_eq!((value("sport", &later), value("ip fragoff", &later)), (None, Some(1)));
        let mut tcp = [0; 24];
        (tcp[12], tcp[13], tcp[20]) = (0x50, 0x12, 99);
        let tcp = datagram(6, &tcp);
        assert_eq!((value("tcp flags", &tcp), value("tcp syn", &tcp)), (Some(0x12), Some(1)));
        assert_eq!(value("data[0]", &tcp), Some(99));
        assert_eq!((value("tcp ack", &tcp), value("tcp push", &tcp)), (Some(1), Some(0)));
        assert_eq!((value("tcp ackno", &tcp), value("tcp seqno", &tcp)), (Some(0), Some(0)));
        assert_eq!(value("data[0]", &tcp[..42]), None, "the word is cut");
    }

    #[test]
    fn invalid_fields_are_refused() {
        for bad in [
            "",
            "ip",
            "ip nose",
            "nose sport",
            "ip[",
            "ip[1",
            "ip[5-3]",
            "ip[0:5]",
            "ip src/33",
            "ip src & 0x5",
            "ip tos & 0x100",
            "ip[99999999:1]",
            "ip[1:0]",
            "ip src/x",
            "ip{28:8}",
            "ip src[3:2]",
            "ip[0-4294967295]",
            "ip proto 256[0]",
        ] {
            assert!(IpField::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn canonical_texts() {
        for (field, canonical) in [
            ("tcp[2-3]", "tcp dport"),
            ("tcp seqno", "tcp seq"),
            ("tcp push", "tcp psh"),
            ("ip src & 0xff", "ip src[3]"),
            ("ip dst{1}", "ip dst{1}"),
            ("ip dst{2:3}", "ip dst{2:3}"),
            ("ip[4:2] & 0x3f0", "ip id{6:6}"),
            ("sport", "tcpudp sport"),
            ("ip proto 200[4:4]", "ip proto 200[4:4]"),
            ("data[0]", "data[0]"),
        ] {
            assert_eq!(IpField::parse(field).unwrap().canonical(), canonical, "{field}");
        }
    }

    proptest! {
        #[test]
        fn bits_agree_with_strings(
            bytes in prop::collection::vec(any::<u8>(), 1..12), offset in 0u32..96, length in 1u32..=32,
        ) {
            prop_assume!(offset % 32 + length <= 32);
            let text: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
            let slice = text.get(offset as usize..(offset + length) as usize);
            let complete = bytes.len() >= (offset / 32 * 4 + 4) as usize;
            let expected = slice.filter(|_| complete).map(|text| u32::from_str_radix(text, 2).unwrap());
            prop_assert_eq!(bits(&bytes, offset, length), expected);
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,20}") {
            if let Ok(field) = IpField::parse(&text) {
                field.value(&datagram(6, &[0; 40]));
            }
        }
    }
}
