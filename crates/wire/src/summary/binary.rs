//! Binary summary dumps: the header lines are followed by records of numbers in network byte order.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |X|     Length of the record, including these four bytes        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | The fields in order; or, if X is set, a line of text          …
//! ```
//!
//! A field that a packet does not have is zero.

use super::value::{IpValue, parse_flags};
use super::view::BadReport;
use super::{Field, Meta, Packet, Writer};
use crate::options::{TcpOptionFilter, c_number, parse_ip, parse_tcp, print_ip, print_tcp};
use crate::timestamp::Timestamp;
use crate::{Ipv4Header, MacAddr};
use std::net::Ipv4Addr;

/// The line that is followed by records.
pub(super) const BINARY: &str = "!binary";
/// Flag in a record's first word: the record is a line of text.
const TEXT: u32 = 1 << 31;
/// Length of a record's first word.
pub const RECORD_HEAD: usize = 4;

/// Parses a record's first word: whether the record is a line of text, and the number of bytes that
/// follow.
pub fn record_head(head: [u8; RECORD_HEAD]) -> Option<(bool, usize)> {
    let word = u32::from_be_bytes(head);
    let len = usize::try_from(word & !TEXT).ok()?.checked_sub(RECORD_HEAD)?;
    Some((word & TEXT != 0, len))
}

/// Encoding of a field in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    /// A number of this many bytes.
    Number(usize),
    /// Seconds, then microseconds.
    Micros,
    /// Seconds, then nanoseconds.
    Nanos,
    /// Microseconds since 1970.
    AllMicros,
    /// An IPv4 address.
    Address,
    /// An Ethernet address.
    Mac,
    /// The first letter of the word.
    Letter,
    /// The length in one byte, then the options.
    Options,
    /// An MD5 digest.
    Digest,
}

/// Encoding of `field` in a record; `None` if a record cannot have it.
fn encoding(field: Field) -> Option<Encoding> {
    Some(match field {
        Field::None => Encoding::Number(0),
        Field::Payload => return None,
        Field::Timestamp | Field::FirstTimestamp => Encoding::Micros,
        Field::Ntimestamp | Field::FirstNtimestamp => Encoding::Nanos,
        Field::TsUsec1 => Encoding::AllMicros,
        Field::IpSrc | Field::IpDst => Encoding::Address,
        Field::EthSrc | Field::EthDst => Encoding::Mac,
        Field::IpFrag => Encoding::Letter,
        Field::IpOpt | Field::TcpOpt | Field::TcpNtopt | Field::TcpSack => Encoding::Options,
        Field::PayloadMd5 | Field::PayloadMd5Hex => Encoding::Digest,
        Field::TsSec
        | Field::TsUsec
        | Field::Count
        | Field::Aggregate
        | Field::Thread
        | Field::WireLen
        | Field::IpLen
        | Field::IpCaptureLen
        | Field::TcpSeq
        | Field::TcpAck
        | Field::UdpLen
        | Field::PayloadLen => Encoding::Number(4),
        Field::EthType
        | Field::IpFragoff
        | Field::IpId
        | Field::IpSum
        | Field::Sport
        | Field::Dport
        | Field::TcpWindow
        | Field::TcpUrp
        | Field::IcmpFlowid
        | Field::IcmpSeq
        | Field::IcmpNextmtu => Encoding::Number(2),
        _ => Encoding::Number(1),
    })
}

impl Field {
    /// Whether records can have this field.
    pub fn is_binary(self) -> bool {
        encoding(self).is_some()
    }

    /// The field with the same value as a number.
    fn numeric(self) -> Field {
        match self {
            Field::IcmpTypeName => Field::IcmpType,
            Field::IcmpCodeName => Field::IcmpCode,
            Field::Direction => Field::Paint,
            Field::PayloadMd5 => Field::PayloadMd5Hex,
            field => field,
        }
    }
}

impl Writer {
    /// Appends the record of a packet. If the packet is bad, appends the `!bad` line that precedes
    /// it to `bad`. `word` is a scratch buffer.
    pub fn record(
        &self,
        packet: &Packet<'_>,
        meta: &Meta,
        word: &mut String,
        out: &mut Vec<u8>,
        bad: Option<&mut String>,
    ) {
        let start = out.len();
        out.extend([0; RECORD_HEAD]);
        let mut bad = BadReport(bad);
        let view = self.view(packet, meta, &mut bad);
        for &field in self.fields() {
            let Some(encoding) = encoding(field) else { continue };
            word.clear();
            let present = self.word(field.numeric(), &view, meta, true, word, &mut bad);
            if !present || encoding.append(field, word, out).is_none() {
                out.resize(out.len() + encoding.min_len(), 0);
            }
        }
        set_head(out, start, 0);
    }
}

/// Appends the record of a line of text, which includes its line end.
pub fn text_record(line: &str, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0; RECORD_HEAD]);
    out.extend(line.as_bytes());
    set_head(out, start, TEXT);
}

/// Sets the first word of the record from `start` to the end of `out`: its length and kind.
fn set_head(out: &mut [u8], start: usize, kind: u32) {
    let len = (out.len() - start) as u32 & !TEXT;
    out[start..start + RECORD_HEAD].copy_from_slice(&(len | kind).to_be_bytes());
}

impl Encoding {
    /// Minimum length in bytes.
    fn min_len(self) -> usize {
        match self {
            Encoding::Number(len) => len,
            Encoding::Micros | Encoding::Nanos | Encoding::AllMicros => 8,
            Encoding::Address => 4,
            Encoding::Mac => 6,
            Encoding::Letter | Encoding::Options => 1,
            Encoding::Digest => 16,
        }
    }

    /// Appends the value `word` of `field`; `None`, and nothing appended, if it cannot be encoded.
    fn append(self, field: Field, word: &str, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Encoding::Number(0) => {}
            Encoding::Number(len) => {
                let bytes = number(field, word)?.to_be_bytes();
                out.extend(&bytes[bytes.len() - len..]);
            }
            Encoding::Micros | Encoding::Nanos => {
                let time: Timestamp = word.parse().ok()?;
                let nanos = self == Encoding::Nanos;
                let part = if nanos { time.subsec_nanos() } else { time.subsec_micros() };
                // The format has 32 bits for seconds.
                out.extend((time.secs() as u32).to_be_bytes());
                out.extend(part.to_be_bytes());
            }
            Encoding::AllMicros => out.extend(word.parse::<i64>().ok()?.to_be_bytes()),
            Encoding::Address => out.extend(word.parse::<Ipv4Addr>().ok()?.octets()),
            Encoding::Mac => out.extend(word.parse::<MacAddr>().ok()?.octets()),
            Encoding::Letter => out.push(*word.as_bytes().first()?),
            Encoding::Options => {
                let list = options(field, word)?;
                out.push(u8::try_from(list.len()).ok()?);
                out.extend(list);
            }
            Encoding::Digest => {
                out.extend(u128::from_str_radix(word, 16).ok()?.to_be_bytes());
            }
        }
        Some(())
    }

    /// Decodes `field` from the start of `from`, as a word of a line in version 1.`minor`.
    fn decode(self, field: Field, minor: u16, from: &mut &[u8]) -> Option<String> {
        let (bytes, rest) = from.split_at_checked(self.min_len())?;
        *from = rest;
        let word = |at: usize| {
            let bytes: Option<[u8; 4]> = bytes.get(at..at + 4)?.try_into().ok();
            bytes.map(u32::from_be_bytes)
        };
        Some(match self {
            Encoding::Number(_) => {
                let number = bytes.iter().fold(0, |n, &byte| n << 8 | u32::from(byte));
                if field == Field::None {
                    "-".to_owned()
                } else {
                    number_word(field, number, minor)
                }
            }
            Encoding::Micros | Encoding::Nanos => {
                let unit = if self == Encoding::Micros { 1000 } else { 1 };
                Timestamp::new(word(0)?.into(), u64::from(word(4)?) * unit).to_string()
            }
            Encoding::AllMicros => {
                ((u64::from(word(0)?) << 32 | u64::from(word(4)?)) as i64).to_string()
            }
            Encoding::Address => Ipv4Addr::from_bits(word(0)?).to_string(),
            Encoding::Mac => MacAddr(bytes.try_into().ok()?).to_string(),
            Encoding::Letter => match bytes[0] {
                letter @ (b'F' | b'f' | b'!' | b'.') => char::from(letter).to_string(),
                _ => "-".to_owned(),
            },
            Encoding::Options => {
                let (list, rest) = from.split_at_checked(bytes[0].into())?;
                *from = rest;
                options_word(field, list)
            }
            Encoding::Digest => "-".to_owned(), // the payload cannot be restored from it
        })
    }
}

/// The numeric value of a word.
fn number(field: Field, word: &str) -> Option<u32> {
    match field {
        Field::IpProto | Field::IpEcn | Field::IpFragoff => {
            match IpValue::parse(field, word, super::VERSION.1)? {
                IpValue::Number(number) => Some(number),
                _ => None,
            }
        }
        Field::TcpFlags => parse_flags(word),
        Field::EthType => u32::from_str_radix(word, 16).ok(),
        _ => c_number(word, u32::MAX),
    }
}

/// The word for a number in lines of version 1.`minor`.
fn number_word(field: Field, number: u32, minor: u16) -> String {
    if field == Field::EthType {
        return format!("{number:04X}");
    } else if field != Field::IpFragoff {
        return number.to_string();
    }
    let has = |flag: u16| number & u32::from(flag) != 0;
    let offset = number & u32::from(Ipv4Header::OFFSET_MASK);
    let more = if has(Ipv4Header::MORE_FRAGMENTS) { "+" } else { "" };
    let dont = if has(Ipv4Header::DONT_FRAGMENT) { "!" } else { "" };
    format!("{}{more}{dont}", if minor > 0 { offset * 8 } else { offset })
}

/// The TCP options that `field` includes.
fn option_filter(field: Field) -> TcpOptionFilter {
    match field {
        Field::TcpNtopt => TcpOptionFilter::NoTimestamps,
        Field::TcpSack => TcpOptionFilter::Sack,
        _ => TcpOptionFilter::All,
    }
}

/// Parses an option list; if `field` has all options, pads it to a multiple of four bytes.
fn options(field: Field, word: &str) -> Option<Vec<u8>> {
    let mut list = match field {
        Field::IpOpt => parse_ip(word)?,
        field => parse_tcp(word, option_filter(field))?,
    };
    if matches!(field, Field::IpOpt | Field::TcpOpt) {
        list.resize(list.len().next_multiple_of(4), 0);
    }
    Some(list)
}

/// The word for an option list.
fn options_word(field: Field, list: &[u8]) -> String {
    let mut word = String::new();
    match field {
        Field::IpOpt => print_ip(list, true, &mut word),
        field => print_tcp(list, option_filter(field), &mut word),
    }
    word
}

/// Converts a record of these fields into a line; `None` if it is truncated.
pub(super) fn record_line(fields: &[Field], minor: u16, mut record: &[u8]) -> Option<String> {
    let mut line = String::new();
    for &field in fields {
        let word = encoding(field)?.decode(field, minor, &mut record)?;
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    Some(line)
}
