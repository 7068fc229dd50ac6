//! Parses the words of a line that are not plain numbers.

use super::Field;
use super::format::FLAG_LETTERS;
use crate::options::{c_number, parse_ip};
use crate::{Ipv4Header, ip_proto};
use std::net::Ipv4Addr;

/// The offset, in units of 8 bytes, of a fragment that is only known not to be the
/// first.
const DEFAULT_OFFSET: u16 = 100;

/// The value of a field of the IP header.
pub(super) enum IpValue {
    /// An address.
    Addr(Ipv4Addr),
    /// A number.
    Number(u32),
    /// A list of options.
    Options(Vec<u8>),
}

impl IpValue {
    /// Parses `word`; fragment offsets in the unit of format version 1.`minor`.
    pub(super) fn parse(field: Field, word: &str, minor: u16) -> Option<IpValue> {
        let max = match field {
            Field::IpSrc | Field::IpDst => return word.parse().ok().map(IpValue::Addr),
            Field::IpOpt => return options(word).map(IpValue::Options),
            Field::IpFrag | Field::IpFragoff => return fragment(word, minor).map(IpValue::Number),
            Field::IpProto => return protocol(word).map(IpValue::Number),
            Field::IpEcn => return ecn(word).map(IpValue::Number),
            Field::IpId | Field::IpSum => 0xffff,
            Field::IpLen => u32::MAX,
            _ => 0xff,
        };
        c_number(word, max).map(IpValue::Number)
    }
}

/// Parses options and pads them to a multiple of four bytes.
fn options(word: &str) -> Option<Vec<u8>> {
    let mut list = parse_ip(word)?;
    list.resize(list.len().next_multiple_of(4), 0);
    Some(list)
}

fn protocol(word: &str) -> Option<u32> {
    match word {
        "T" => Some(ip_proto::TCP.into()),
        "U" => Some(ip_proto::UDP.into()),
        "I" => Some(ip_proto::ICMP.into()),
        word => c_number(word, 255),
    }
}

fn ecn(word: &str) -> Option<u32> {
    Some(match word {
        "no" | "0" => 0,
        "ect1" | "ECT(1)" | "1" => 1,
        "ect2" | "ECT(0)" | "2" => 2,
        "ce" | "CE" | "3" => 3,
        _ => return None,
    })
}

/// Parses the fragment word. Versions before 1.1 have offsets in units of 8 bytes.
fn fragment(word: &str, minor: u16) -> Option<u32> {
    let word = match word {
        "." => 0,
        "!" => Ipv4Header::DONT_FRAGMENT,
        "F" => Ipv4Header::MORE_FRAGMENTS,
        "f" => DEFAULT_OFFSET,
        word => {
            let number = word.trim_end_matches(['!', '+']);
            let offset = c_number(number, 0xffff)? as u16;
            let offset = if minor > 0 { offset >> 3 } else { offset };
            let flags = word[number.len()..].bytes().map(|b| match b {
                b'!' => Ipv4Header::DONT_FRAGMENT,
                _ => Ipv4Header::MORE_FRAGMENTS,
            });
            flags.fold(offset & Ipv4Header::OFFSET_MASK, |word, flag| word | flag)
        }
    };
    Some(word.into())
}

/// Parses TCP flags: letters or a number.
pub(super) fn parse_flags(word: &str) -> Option<u32> {
    if word == "." {
        return Some(0);
    }
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        return c_number(word, 0xfff);
    }
    word.chars().try_fold(0, |flags, letter| {
        // Synonyms: X and Y of old tcpdump versions, W of version 1.1.
        let letter = match letter {
            'X' => 'E',
            'Y' | 'W' => 'C',
            letter => letter,
        };
        Some(flags | 1 << FLAG_LETTERS.find(letter)?)
    })
}

/// Sets a field of the fixed IP header, without its length fields.
pub(super) fn set_ip(ip: &mut Ipv4Header, field: Field, value: IpValue) {
    match (field, value) {
        (Field::IpSrc, IpValue::Addr(addr)) => ip.set_src(addr),
        (Field::IpDst, IpValue::Addr(addr)) => ip.set_dst(addr),
        (Field::IpTos, IpValue::Number(n)) => ip.set_tos(n as u8),
        (Field::IpDscp, IpValue::Number(n)) => ip.set_dscp(n as u8),
        (Field::IpEcn, IpValue::Number(n)) => ip.set_ecn(n as u8),
        (Field::IpTtl, IpValue::Number(n)) => ip.set_ttl(n as u8),
        (Field::IpFrag | Field::IpFragoff, IpValue::Number(n)) => ip.set_fragment_word(n as u16),
        (Field::IpId, IpValue::Number(n)) => ip.set_id(n as u16),
        (Field::IpSum, IpValue::Number(n)) => ip.set_checksum(n as u16),
        (Field::IpProto, IpValue::Number(n)) => ip.set_protocol(n as u8),
        _ => {}
    }
}
