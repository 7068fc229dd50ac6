//! The binary form of a dump: behind its first lines come records of numbers in network byte order.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |X|     Length of the record, with these four bytes             |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | The fields in turn; or, where X is set, a line of text        …
//! ```
//!
//! What a packet does not have is zero.

use super::value::{IpValue, parse_flags};
use super::view::Bad;
use super::{Field, Meta, Packet, Writer};
use crate::options::{TcpShow, c_number, parse_ip, parse_tcp, print_ip, print_tcp};
use crate::timestamp::Timestamp;
use crate::{Ipv4Header, MacAddr};
use std::net::Ipv4Addr;

/// The line behind which records come.
pub(super) const BINARY: &str = "!binary";
/// In a record's first word: it is a line of text.
const TEXT: u32 = 1 << 31;
/// Length of a record's first word.
pub const RECORD_HEAD: usize = 4;

/// What a record's first word says: whether it is a line of text, and how many bytes follow.
pub fn record_head(head: [u8; RECORD_HEAD]) -> Option<(bool, usize)> {
    let word = u32::from_be_bytes(head);
    let len = usize::try_from(word & !TEXT).ok()?.checked_sub(RECORD_HEAD)?;
    Some((word & TEXT != 0, len))
}

/// How a field lies in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// So many bytes of a number.
    Number(usize),
    /// Seconds, then microseconds.
    Micros,
    /// Seconds, then nanoseconds.
    Nanos,
    /// Microseconds since 1970.
    AllMicros,
    Address,
    Mac,
    /// The letter that stands for it.
    Letter,
    /// A byte that says how many follow.
    Options,
    /// An MD5 digest.
    Digest,
}

/// How `field` lies in a record; `None` if it cannot.
fn form(field: Field) -> Option<Form> {
    Some(match field {
        Field::None => Form::Number(0),
        Field::Payload => return None,
        Field::Timestamp | Field::FirstTimestamp => Form::Micros,
        Field::Ntimestamp | Field::FirstNtimestamp => Form::Nanos,
        Field::TsUsec1 => Form::AllMicros,
        Field::IpSrc | Field::IpDst => Form::Address,
        Field::EthSrc | Field::EthDst => Form::Mac,
        Field::IpFrag => Form::Letter,
        Field::IpOpt | Field::TcpOpt | Field::TcpNtopt | Field::TcpSack => Form::Options,
        Field::PayloadMd5 | Field::PayloadMd5Hex => Form::Digest,
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
        | Field::PayloadLen => Form::Number(4),
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
        | Field::IcmpNextmtu => Form::Number(2),
        _ => Form::Number(1),
    })
}

impl Field {
    /// Whether records can have it.
    pub fn is_binary(self) -> bool {
        form(self).is_some()
    }

    /// The field that has the same in numbers.
    fn in_numbers(self) -> Field {
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
    /// Appends the record of a packet; and to `bad`, if it is wanted and the packet is bad, the
    /// `!bad` line to stand before it. `word` is for words on their way.
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
        let mut bad = Bad(bad);
        let view = self.view(packet, meta, &mut bad);
        for &field in self.fields() {
            let Some(form) = form(field) else { continue };
            word.clear();
            let there = self.word(field.in_numbers(), &view, meta, true, word, &mut bad);
            if !there || form.append(field, word, out).is_none() {
                out.resize(out.len() + form.least(), 0);
            }
        }
        set_head(out, start, 0);
    }
}

/// Appends the record of a line of text, which has its end.
pub fn text_record(line: &str, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0; RECORD_HEAD]);
    out.extend(line.as_bytes());
    set_head(out, start, TEXT);
}

/// Says at the beginning of the record that begins at `start` and is the last so far, how long it
/// is and of what kind.
fn set_head(out: &mut [u8], start: usize, kind: u32) {
    let len = (out.len() - start) as u32 & !TEXT;
    out[start..start + RECORD_HEAD].copy_from_slice(&(len | kind).to_be_bytes());
}

impl Form {
    /// The bytes that it has in any case.
    fn least(self) -> usize {
        match self {
            Form::Number(len) => len,
            Form::Micros | Form::Nanos | Form::AllMicros => 8,
            Form::Address => 4,
            Form::Mac => 6,
            Form::Letter | Form::Options => 1,
            Form::Digest => 16,
        }
    }

    /// Appends what `word` says of `field`; nothing if that cannot be said.
    fn append(self, field: Field, word: &str, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Form::Number(0) => {}
            Form::Number(len) => {
                let bytes = number(field, word)?.to_be_bytes();
                out.extend(&bytes[bytes.len() - len..]);
            }
            Form::Micros | Form::Nanos => {
                let time: Timestamp = word.parse().ok()?;
                let nanos = self == Form::Nanos;
                let part = if nanos { time.subsec_nanos() } else { time.subsec_micros() };
                // Seconds have four bytes here, whatever the year.
                out.extend((time.secs() as u32).to_be_bytes());
                out.extend(part.to_be_bytes());
            }
            Form::AllMicros => out.extend(word.parse::<i64>().ok()?.to_be_bytes()),
            Form::Address => out.extend(word.parse::<Ipv4Addr>().ok()?.octets()),
            Form::Mac => out.extend(word.parse::<MacAddr>().ok()?.octets()),
            Form::Letter => out.push(*word.as_bytes().first()?),
            Form::Options => {
                let list = options(field, word)?;
                out.push(u8::try_from(list.len()).ok()?);
                out.extend(list);
            }
            Form::Digest => {
                out.extend(u128::from_str_radix(word, 16).ok()?.to_be_bytes());
            }
        }
        Some(())
    }

    /// Takes what there is of `field` from a record, as the word that a line has for it.
    fn take(self, field: Field, minor: u16, from: &mut &[u8]) -> Option<String> {
        let (bytes, rest) = from.split_at_checked(self.least())?;
        *from = rest;
        let word = |at: usize| {
            let bytes: Option<[u8; 4]> = bytes.get(at..at + 4)?.try_into().ok();
            bytes.map(u32::from_be_bytes)
        };
        Some(match self {
            Form::Number(_) => {
                let number = bytes.iter().fold(0, |n, &byte| n << 8 | u32::from(byte));
                if field == Field::None { "-".to_owned() } else { show(field, number, minor) }
            }
            Form::Micros | Form::Nanos => {
                let unit = if self == Form::Micros { 1000 } else { 1 };
                Timestamp::new(word(0)?.into(), u64::from(word(4)?) * unit).to_string()
            }
            Form::AllMicros => {
                ((u64::from(word(0)?) << 32 | u64::from(word(4)?)) as i64).to_string()
            }
            Form::Address => Ipv4Addr::from_bits(word(0)?).to_string(),
            Form::Mac => MacAddr(bytes.try_into().ok()?).to_string(),
            Form::Letter => match bytes[0] {
                letter @ (b'F' | b'f' | b'!' | b'.') => char::from(letter).to_string(),
                _ => "-".to_owned(),
            },
            Form::Options => {
                let (list, rest) = from.split_at_checked(bytes[0].into())?;
                *from = rest;
                show_options(field, list)
            }
            Form::Digest => "-".to_owned(), // nobody can make a payload of it
        })
    }
}

/// The number that a word stands for.
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

/// A number as lines of version 1.`minor` have it.
fn show(field: Field, number: u32, minor: u16) -> String {
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

/// Which options `field` is about.
fn shown(field: Field) -> TcpShow {
    match field {
        Field::TcpNtopt => TcpShow::NoTimestamps,
        Field::TcpSack => TcpShow::Sack,
        _ => TcpShow::All,
    }
}

/// The options that a word lists; where it lists all, as many bytes as a header has of them.
fn options(field: Field, word: &str) -> Option<Vec<u8>> {
    let mut list = match field {
        Field::IpOpt => parse_ip(word)?,
        field => parse_tcp(word, shown(field))?,
    };
    if matches!(field, Field::IpOpt | Field::TcpOpt) {
        list.resize(list.len().next_multiple_of(4), 0);
    }
    Some(list)
}

fn show_options(field: Field, list: &[u8]) -> String {
    let mut word = String::new();
    match field {
        Field::IpOpt => print_ip(list, true, &mut word),
        field => print_tcp(list, shown(field), &mut word),
    }
    word
}

/// The line that a record of these fields stands for; `None` if it is cut short.
pub(super) fn line_of(fields: &[Field], minor: u16, mut record: &[u8]) -> Option<String> {
    let mut line = String::new();
    for &field in fields {
        let word = form(field)?.take(field, minor, &mut record)?;
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    Some(line)
}
