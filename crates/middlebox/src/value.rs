//! Values in rules, and how they compare.

use crate::chains::ChainPaths;
use crate::ct_state::CtState;
use crate::field::{Field, Kind};
use crate::limits::Rate;
use crate::value_set::{NumberSet, ValueFamily, ValueSet, check_name};
use castanet_wire::{MacAddr, ip_proto};
use std::cmp::Ordering;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// A value that a rule names.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Value {
    /// A number.
    Number(u64),
    /// An IPv4 prefix; the bits behind it are zero.
    Net4 {
        /// The address.
        address: u32,
        /// Length of the prefix.
        length: u8,
    },
    /// An IPv6 prefix; the bits behind it are zero.
    Net6 {
        /// The address.
        address: u128,
        /// Length of the prefix.
        length: u8,
    },
    /// Bytes.
    Bytes(Box<[u8]>),
    /// The name of an interface, or of a chain.
    Name(Box<str>),
    /// A set of numbers or addresses.
    Set(Arc<ValueSet>),
    /// A chain, with the paths by which packets come to it.
    Chain(Arc<ChainPaths>),
    /// A rate.
    Rate(Rate),
}

/// Comparison of a field with a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Condition {
    /// Equal.
    Equal,
    /// Not equal.
    Unequal,
    /// At most.
    AtMost,
    /// At least.
    AtLeast,
    /// Less.
    Less,
    /// More.
    More,
}

/// Every condition, and how rules spell it.
pub const CONDITIONS: [(&str, Condition); 6] = [
    ("==", Condition::Equal),
    ("!=", Condition::Unequal),
    ("<=", Condition::AtMost),
    (">=", Condition::AtLeast),
    ("<", Condition::Less),
    (">", Condition::More),
];

impl Condition {
    /// Whether the condition is satisfied by an ordering.
    #[inline]
    pub fn allows(self, order: Ordering) -> bool {
        match self {
            Condition::Equal => order.is_eq(),
            Condition::Unequal => order.is_ne(),
            Condition::AtMost => order.is_le(),
            Condition::AtLeast => order.is_ge(),
            Condition::Less => order.is_lt(),
            Condition::More => order.is_gt(),
        }
    }

    /// The condition that allows what this one does not, if that is wanted.
    pub fn inverse_if(self, is_inverse: bool) -> Condition {
        match self {
            _ if !is_inverse => self,
            Condition::Equal => Condition::Unequal,
            Condition::Unequal => Condition::Equal,
            Condition::AtMost => Condition::More,
            Condition::More => Condition::AtMost,
            Condition::AtLeast => Condition::Less,
            Condition::Less => Condition::AtLeast,
        }
    }

    /// Whether it asks for no order, only whether the two are the same.
    pub fn is_equality(self) -> bool {
        matches!(self, Condition::Equal | Condition::Unequal)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = CONDITIONS.iter().find(|(_, condition)| condition == self);
        f.write_str(word.map_or("", |(word, _)| word))
    }
}

/// Protocols by name.
const PROTOCOLS: [(&str, u8); 9] = [
    ("tcp", ip_proto::TCP),
    ("udp", ip_proto::UDP),
    ("icmp", ip_proto::ICMP),
    ("icmp6", ip_proto::ICMPV6),
    ("igmp", ip_proto::IGMP),
    ("gre", ip_proto::GRE),
    ("esp", ip_proto::ESP),
    ("sctp", ip_proto::SCTP),
    ("dccp", ip_proto::DCCP),
];

/// The most bytes that a value can have.
pub const LONGEST: usize = 64;
/// The most bytes that the value of a TCP option can have.
pub(crate) const LONGEST_OPTION: usize = 38;

impl Value {
    /// Parses a value of `field`; the error says what is expected.
    pub fn parse(field: Field, text: &str) -> Result<Value, String> {
        let spec = field.spec();
        let wanted = || Err(format!("{field} wants {}", wants(field)));
        let value = match spec.kind {
            Kind::Presence => return Err(format!("{field} has no value")),
            Kind::Flag | Kind::Named(_) => number(text, 1).map(Value::Number),
            Kind::Number | Kind::Checksum => number(text, spec.bits()).map(Value::Number),
            Kind::Protocol => {
                let number = || number(text, 8);
                protocol(text).map(u64::from).or_else(number).map(Value::Number)
            }
            Kind::Version => match text {
                "ip4" => Some(Value::Number(4)),
                "ip6" => Some(Value::Number(6)),
                _ => None,
            },
            Kind::Address4 => net4(text),
            Kind::Address6 => net6(text),
            Kind::Station => text.parse().ok().map(station),
            Kind::Prefix => hex(text, LONGEST).map(Value::Bytes),
            Kind::Bytes => hex(text, LONGEST_OPTION).or_else(|| short(text)).map(Value::Bytes),
            Kind::Interface => Some(Value::Name(text.into())),
            Kind::State => CtState::number_of(text).map(Value::Number),
            Kind::Chain => check_name(text).ok().map(|()| Value::Name(text.into())),
            Kind::Rate => return Rate::parse(text).map(Value::Rate),
        };
        value.map_or_else(wanted, Ok)
    }

    /// Parses what a match compares `field` with: a value, a list of values and ranges such as
    /// `80,443,8000-8100`, or the name of a set such as `@blocked`. The set has no values until
    /// [`RuleSet`](crate::RuleSet) looks it up. The error says what is expected.
    pub fn parse_of_match(field: Field, text: &str) -> Result<Value, String> {
        let Some(family) = ValueFamily::of(field) else { return Value::parse(field, text) };
        let is_state = field.spec().kind == Kind::State;
        if let Some(name) = text.strip_prefix('@').filter(|_| !is_state) {
            let set = ValueSet::named(name, NumberSet::default())?;
            return Ok(Value::Set(Arc::new(set)));
        }
        if !text.contains([',', '-']) {
            return Value::parse(field, text);
        }
        let ranges = text.split(',').map(|part| Value::parse_range(field, part));
        let ranges = NumberSet::new(ranges.collect::<Result<_, String>>()?);
        Ok(match family.single(&ranges) {
            Some(value) => value,
            None => Value::Set(Arc::new(ValueSet::list(ranges))),
        })
    }

    /// Parses a part of a list: a value, or two with `-` between them.
    fn parse_range(field: Field, text: &str) -> Result<(u128, u128), String> {
        let one = |text: &str| match text {
            "" => Err("a list has no blanks and no empty places: `80,443,8000-8100`".to_owned()),
            text => Value::parse(field, text),
        };
        // An Ethernet address may have `-` between its bytes.
        let is_station = Value::parse(field, text).is_ok();
        let has_ranges = !is_station && field.spec().kind != Kind::State;
        let Some((low, high)) = text.split_once('-').filter(|_| has_ranges) else {
            let value = one(text)?;
            return value.range().ok_or_else(|| format!("{field} takes no lists"));
        };
        match (one(low)?.single(), one(high)?.single()) {
            (Some(low), Some(high)) if low <= high => Ok((low, high)),
            (Some(_), Some(_)) => Err(format!("the range `{text}` ends before it begins")),
            _ => Err(format!("a range is of two single values, and `{text}` has a prefix")),
        }
    }

    /// The least and the greatest number that the value stands for; `None` if it is no number.
    pub(crate) fn range(&self) -> Option<(u128, u128)> {
        match self {
            Value::Number(n) => Some((u128::from(*n), u128::from(*n))),
            Value::Net4 { address, length } => {
                Some((u128::from(*address), u128::from(address | !mask4(*length))))
            }
            Value::Net6 { address, length } => Some((*address, address | !mask6(*length))),
            _ => None,
        }
    }

    /// The number, if it is a single one.
    fn single(&self) -> Option<u128> {
        self.range().filter(|(low, high)| low == high).map(|(low, _)| low)
    }

    /// The set of the value, if it is one.
    pub(crate) fn set(&self) -> Option<&Arc<ValueSet>> {
        match self {
            Value::Set(set) => Some(set),
            _ => None,
        }
    }

    /// Renders the value as rules of that field write it.
    pub fn of(&self, field: Field) -> impl fmt::Display {
        DisplayValue { kind: field.spec().kind, value: self.clone() }
    }

    /// The value as bytes, as wide as the field is.
    pub fn bytes(&self, bits: u16) -> ([u8; LONGEST], usize) {
        let mut all = [0; LONGEST];
        let mut put = |bytes: &[u8]| {
            let length = bytes.len().min(LONGEST);
            all[..length].copy_from_slice(&bytes[..length]);
            length
        };
        let length = match self {
            Value::Number(n) => {
                let bytes = n.to_be_bytes();
                put(&bytes[bytes.len().saturating_sub(usize::from(bits.div_ceil(8)))..])
            }
            Value::Net4 { address, .. } => put(&address.to_be_bytes()),
            Value::Net6 { address, .. } => put(&address.to_be_bytes()),
            Value::Bytes(bytes) => put(bytes),
            Value::Name(_) | Value::Set(_) | Value::Chain(_) | Value::Rate(_) => 0,
        };
        (all, length)
    }
}

/// Describes the values of `field`.
pub fn wants(field: Field) -> String {
    let spec = field.spec();
    match spec.kind {
        Kind::Presence => "no value".into(),
        Kind::Flag | Kind::Named(_) => "0 or 1".into(),
        Kind::Number | Kind::Checksum => match spec.bits() {
            64 => "a number of 64 bits".into(),
            bits => format!("a number from 0 to {}", (1u64 << bits) - 1),
        },
        Kind::Protocol => {
            let names = PROTOCOLS.map(|(name, _)| name).join(", ");
            format!("{names} or a number from 0 to 255")
        }
        Kind::Version => "ip4 or ip6".into(),
        Kind::Address4 => "an IPv4 address or prefix, such as 10.0.0.0/8".into(),
        Kind::Address6 => "an IPv6 address or prefix, such as 2001:db8::/32".into(),
        Kind::Station => "an Ethernet address, such as 02:00:00:00:00:01".into(),
        Kind::Prefix => format!("1 to {LONGEST} bytes in hexadecimal, such as 0x474554"),
        Kind::Bytes => format!("0 to {LONGEST_OPTION} bytes in hexadecimal, or a number"),
        Kind::Interface => "the name of an interface".into(),
        Kind::State => CtState::NAMED.map(|(name, _)| name).join(", ") + " or a list of them",
        Kind::Chain => "the name of a chain".into(),
        Kind::Rate => Rate::SYNTAX.into(),
    }
}

/// The digits behind `0x` or `x`.
fn digits(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix('x'))
}

/// Whether a word can be meant as a number.
pub(crate) fn is_numeric(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        || text.strip_prefix('x').is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
}

/// A number of at most so many bits.
pub(crate) fn number(text: &str, bits: u16) -> Option<u64> {
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = match digits(text) {
        Some(digits) => u64::from_str_radix(digits, 16).ok().filter(|_| is_plain(digits)),
        None => text.parse().ok().filter(|_| is_plain(text)),
    };
    number.filter(|n| bits >= 64 || n >> bits == 0)
}

/// Bytes in hexadecimal.
fn hex(text: &str, most: usize) -> Option<Box<[u8]>> {
    let digits = digits(text)?;
    let odd = digits.len() % 2;
    if digits.is_empty() || digits.len() + odd > 2 * most {
        return None;
    }
    let padded = format!("{}{digits}", if odd == 1 { "0" } else { "" });
    let digit = |c: u8| char::from(c).to_digit(16).map(|n| n as u8);
    let pairs = padded.as_bytes().as_chunks::<2>().0;
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

/// A number in as few bytes as it needs.
fn short(text: &str) -> Option<Box<[u8]>> {
    let bytes = number(text, 64)?.to_be_bytes();
    let first = bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len() - 1);
    Some(bytes[first..].into())
}

/// The protocol of a name.
pub(crate) fn protocol(name: &str) -> Option<u8> {
    PROTOCOLS.iter().find(|(named, _)| *named == name).map(|(_, number)| *number)
}

/// The value of an Ethernet address.
pub(crate) fn station(address: MacAddr) -> Value {
    Value::Number(address.0.iter().fold(0, |n, &byte| n << 8 | u64::from(byte)))
}

/// The Ethernet address of a value.
fn mac(number: u64) -> MacAddr {
    let [_, _, address @ ..] = number.to_be_bytes();
    MacAddr(address)
}

/// An IPv4 address or prefix.
pub(crate) fn net4(text: &str) -> Option<Value> {
    let (address, length) = prefix(text, 32)?;
    let address = address.parse::<Ipv4Addr>().ok()?.to_bits();
    Some(Value::Net4 { address: address & mask4(length), length })
}

/// An IPv6 address or prefix.
pub(crate) fn net6(text: &str) -> Option<Value> {
    let (address, length) = prefix(text, 128)?;
    let address = address.parse::<Ipv6Addr>().ok()?.to_bits();
    Some(Value::Net6 { address: address & mask6(length), length })
}

fn prefix(text: &str, most: u8) -> Option<(&str, u8)> {
    match text.split_once('/') {
        None => Some((text, most)),
        Some((address, length)) => {
            let length = number(length, 8).filter(|&n| n <= u64::from(most))?;
            Some((address, length as u8))
        }
    }
}

/// The mask of an IPv4 prefix.
#[inline]
pub(crate) fn mask4(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

/// The mask of an IPv6 prefix.
#[inline]
pub(crate) fn mask6(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

pub(crate) struct DisplayValue {
    pub(crate) kind: Kind,
    pub(crate) value: Value,
}

impl fmt::Display for DisplayValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.value, self.kind) {
            (Value::Number(n), Kind::Protocol) => {
                match PROTOCOLS.iter().find(|(_, number)| u64::from(*number) == *n) {
                    Some((name, _)) => f.write_str(name),
                    None => write!(f, "{n}"),
                }
            }
            (Value::Number(n), Kind::Version) => write!(f, "ip{n}"),
            (Value::Number(n), Kind::State) => {
                f.write_str(CtState::name_of((*n).into()).unwrap_or_default())
            }
            (Value::Number(n), Kind::Station) => write!(f, "{}", mac(*n).with_colons()),
            (Value::Number(n), _) => write!(f, "{n}"),
            (Value::Net4 { address, length }, _) => {
                write!(f, "{}", Ipv4Addr::from_bits(*address))?;
                if *length < 32 { write!(f, "/{length}") } else { Ok(()) }
            }
            (Value::Net6 { address, length }, _) => {
                write!(f, "{}", Ipv6Addr::from_bits(*address))?;
                if *length < 128 { write!(f, "/{length}") } else { Ok(()) }
            }
            (Value::Bytes(bytes), _) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            (Value::Name(name), _) => f.write_str(name),
            (Value::Set(set), kind) => write!(f, "{}", set.of(kind)),
            (Value::Chain(chain), _) => f.write_str(chain.name()),
            (Value::Rate(rate), _) => write!(f, "{rate}"),
        }
    }
}
