//! Fields of IP packets by name, for `AggregateIP`.
//!
//! A field is written as `ip src/8`, `ip[8:2] & 0x3f0`, `tcp{106-111}` or `data[0]`: a header, a
//! position in it in bytes or bits, and a mask.

use castanet_wire::{Ipv4Header, Tcp, ip_proto};

/// The header that a field's position is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// The IP header.
    Ip,
    /// The transport header.
    Transport,
    /// The payload after the header of TCP or UDP.
    Payload,
}

impl Header {
    /// The name in handlers.
    pub fn name(self) -> &'static str {
        match self {
            Header::Ip => "ip",
            Header::Transport => "transp",
            Header::Payload => "payload",
        }
    }
}

/// Bits of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpField {
    /// The protocol that has the field; 0 for any, [`PORTS`] for those with ports.
    protocol: u8,
    /// The header that the position is relative to.
    pub header: Header,
    /// The first bit.
    pub bit_offset: u32,
    /// The number of bits, at most 32.
    pub bit_length: u32,
}

/// TCP or UDP.
const PORTS: u8 = u8::MAX;
/// The longest field in bits.
const MAX_BITS: u32 = 32;
/// The largest bit offset.
const MAX_BIT_OFFSET: u32 = 8 * u16::MAX as u32;

/// Protocol, name, first bit, number of bits.
const FIELDS: &[(&str, &str, u32, u32)] = &[
    ("ip", "vers", 0, 4),
    ("ip", "hl", 4, 4),
    ("ip", "tos", 8, 8),
    ("ip", "dscp", 8, 6),
    ("ip", "ecn", 14, 2),
    ("ip", "len", 16, 16),
    ("ip", "id", 32, 16),
    ("ip", "off", 48, 16),
    ("ip", "rf", 48, 1),
    ("ip", "df", 49, 1),
    ("ip", "mf", 50, 1),
    ("ip", "fragoff", 51, 13),
    ("ip", "ttl", 64, 8),
    ("ip", "proto", 72, 8),
    ("ip", "sum", 80, 16),
    ("ip", "src", 96, 32),
    ("ip", "dst", 128, 32),
    ("udp", "sport", 0, 16),
    ("udp", "dport", 16, 16),
    ("udp", "len", 32, 16),
    ("udp", "sum", 48, 16),
    ("tcp", "sport", 0, 16),
    ("tcp", "dport", 16, 16),
    ("tcp", "seq", 32, 32),
    ("tcp", "ack", 64, 32),
    ("tcp", "hl", 96, 4),
    ("tcp", "flags", 106, 6),
    ("tcp", "urg", 106, 1),
    ("tcp", "ackf", 107, 1),
    ("tcp", "psh", 108, 1),
    ("tcp", "rst", 109, 1),
    ("tcp", "syn", 110, 1),
    ("tcp", "fin", 111, 1),
    ("tcp", "win", 112, 16),
    ("tcp", "sum", 128, 16),
    ("tcp", "urp", 144, 16),
    ("icmp", "type", 0, 8),
    ("icmp", "code", 8, 8),
    ("icmp", "sum", 16, 16),
    ("ports", "sport", 0, 16),
    ("ports", "dport", 16, 16),
];

/// The protocol and the header that a word stands for.
fn header(word: &str) -> Option<(u8, Header)> {
    Some(match word {
        "ip" => (0, Header::Ip),
        "transp" => (0, Header::Transport),
        "data" | "payload" => (PORTS, Header::Payload),
        "ports" => (PORTS, Header::Transport),
        "tcp" => (ip_proto::TCP, Header::Transport),
        "udp" => (ip_proto::UDP, Header::Transport),
        "icmp" => (ip_proto::ICMP, Header::Transport),
        _ => return None,
    })
}

fn parse_number(text: &str) -> Result<u32, String> {
    let text = text.trim();
    let value = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    value.map_err(|_| format!("'{text}' is not a number"))
}

impl IpField {
    /// Parses a field and its mask.
    pub fn parse(text: &str) -> Result<IpField, String> {
        let text = text.trim();
        let end = text.find(['/', '&']).unwrap_or(text.len());
        let (position, mask) = text.split_at(end);
        let mut field = match position.find(['[', '{']) {
            Some(at) => IpField::parse_position(position[..at].trim(), position[at..].trim())?,
            None => IpField::parse_named(position)?,
        };
        field.apply_mask(mask)?;
        match field.bit_length {
            0 => Err("field has no bits".into()),
            bits if bits > MAX_BITS => Err(format!("too many bits: {bits}, at most {MAX_BITS}")),
            _ => Ok(field),
        }
    }

    fn parse_named(position: &str) -> Result<IpField, String> {
        let words: Vec<&str> = position.split_whitespace().collect();
        let (of, name) = match words.as_slice() {
            [name] => ("ports", *name),
            [of, name] => (*of, *name),
            _ => return Err(format!("'{position}' is not a field")),
        };
        let known = FIELDS.iter().find(|entry| (entry.0, entry.1) == (of, name));
        let unknown = || format!("unknown field '{}'", position.trim());
        let &(_, _, bit_offset, bit_length) = known.ok_or_else(unknown)?;
        let (protocol, header) = header(of).ok_or_else(unknown)?;
        Ok(IpField { protocol, header, bit_offset, bit_length })
    }

    /// Parses `[OFFSET:LENGTH]`, `[FIRST-LAST]`, `[OFFSET]`, or the same in bits.
    fn parse_position(of: &str, position: &str) -> Result<IpField, String> {
        let (protocol, header) = header(of).ok_or_else(|| format!("unknown header '{of}'"))?;
        let inner = |open, close| position.strip_prefix(open)?.strip_suffix(close);
        let (inner, unit) = match (inner('[', ']'), inner('{', '}')) {
            (Some(inner), _) => (inner, 8),
            (_, Some(inner)) => (inner, 1),
            _ => return Err(format!("'{position}' does not end")),
        };
        let (offset, length) = if let Some((offset, length)) = inner.split_once([':', ',']) {
            (parse_number(offset)?, parse_number(length)?)
        } else if let Some((first, last)) = inner.split_once('-') {
            let (first, last) = (parse_number(first)?, parse_number(last)?);
            (first, (last + 1).checked_sub(first).ok_or("last comes before first")?)
        } else {
            (parse_number(inner)?, 1)
        };
        let bits = |n: u32| n.checked_mul(unit).filter(|&bits| bits <= MAX_BIT_OFFSET);
        let far = || "too far from the start".to_owned();
        let bit_offset = bits(offset).ok_or_else(far)?;
        Ok(IpField { protocol, header, bit_offset, bit_length: bits(length).ok_or_else(far)? })
    }

    /// Applies `/NUM`, the leading bits, or `& MASK`, contiguous ones.
    fn apply_mask(&mut self, mask: &str) -> Result<(), String> {
        if let Some(bits) = mask.strip_prefix('/') {
            let bits = parse_number(bits)?;
            if bits > self.bit_length {
                return Err(format!("/{bits} is longer than the field"));
            }
            self.bit_length = bits;
        } else if let Some(ones) = mask.strip_prefix('&') {
            let ones = parse_number(ones)?;
            let (low, count) = (ones.trailing_zeros(), ones.count_ones());
            let contiguous = ones != 0 && u64::from(ones >> low) == (1u64 << count) - 1;
            if !contiguous || low + count > self.bit_length {
                return Err("mask must be ones without a hole, within the field".into());
            }
            self.bit_offset += self.bit_length - low - count;
            self.bit_length = count;
        }
        Ok(())
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
        let is_it = self.protocol == 0
            || self.protocol == ip.protocol()
            || self.protocol == PORTS && of_ports;
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

/// Up to 32 bits of `bytes`, most significant first.
fn bits(bytes: &[u8], offset: u32, length: u32) -> Option<u32> {
    let (first, last) = (offset / 8, (offset + length - 1) / 8);
    let bytes = bytes.get(first as usize..=last as usize)?;
    let all = bytes.iter().fold(0u64, |all, &byte| all << 8 | u64::from(byte));
    let below = (last + 1) * 8 - offset - length;
    Some((all >> below & ((1 << length) - 1)) as u32)
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
        IpField::parse(field).unwrap_or_else(|e| panic!("{field}: {e}")).value(datagram)
    }

    #[test]
    fn equivalent_forms_of_a_field() {
        let packet = datagram(17, &[0, 5, 0, 10, 0, 8, 0, 0]);
        for field in
            ["ip src/8", "ip src & 0xFF000000", "ip[12]", "ip[12, 1]", "ip{96, 8}", "ip{96-103}"]
        {
            let it = IpField::parse(field).unwrap();
            assert_eq!((it.bit_offset, it.bit_length), (96, 8), "{field}");
            assert_eq!((it.value(&packet), it.address_shift()), (Some(1), Some(24)), "{field}");
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
        ] {
            assert!(IpField::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn bits_agree_with_strings(
            bytes in prop::collection::vec(any::<u8>(), 1..12), offset in 0u32..96, length in 1u32..=32,
        ) {
            let text: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
            let slice = text.get(offset as usize..(offset + length) as usize);
            let expected = slice.map(|text| u32::from_str_radix(text, 2).unwrap());
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
