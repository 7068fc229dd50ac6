//! The types that can stand in a configuration.

use super::{AddressKind, ArgError, Names};
use castanet_kit::formula::Formula;
use castanet_kit::text::{parse_bool, parse_integer};
use castanet_lang::args::{split_words, unquote, unquote_bytes};
use castanet_packet::anno::{self, Anno};
use castanet_wire::MacAddr;
use std::fmt::Display;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::{Bound, RangeBounds};
use std::time::Duration;

/// A type that can stand in a configuration.
pub trait FromArg: Sized {
    /// The form of a value, for the manual and for errors.
    const SYNTAX: &'static str;
    /// Parses one argument.
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError>;
}

fn wrong<T: FromArg>(text: &str, click: &str) -> ArgError {
    ArgError::new(format!("`{text}` is not {}", T::SYNTAX)).click(click)
}

impl FromArg for bool {
    const SYNTAX: &'static str = "true or false";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        parse_bool(text).ok_or_else(|| wrong::<Self>(text, "syntax error"))
    }
}

macro_rules! integers {
    ($($ty:ty, $syntax:literal;)*) => {$(
        impl FromArg for $ty {
            const SYNTAX: &'static str = $syntax;
            fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
                let n = parse_integer(text).ok_or_else(|| wrong::<Self>(text, "invalid number"))?;
                <$ty>::try_from(n).map_err(|_| {
                    ArgError::new(format!("{text} is out of range; it wants {}", Self::SYNTAX))
                        .click(if n < 0 {
                            format!("must be >= {}", <$ty>::MIN)
                        } else {
                            format!("out of range, bound {}", <$ty>::MAX)
                        })
                })
            }
        }
    )*};
}

integers! {
    u8, "a number from 0 to 255";
    u16, "a number from 0 to 65535";
    u32, "a number from 0 to 4294967295";
    u64, "a number";
    usize, "a number";
    i32, "an integer";
    i64, "an integer";
}

/// Parses a number that must lie in `range`, which `syntax` puts in words.
pub fn within<T: FromArg + PartialOrd + Display>(
    text: &str,
    names: &Names,
    range: &impl RangeBounds<T>,
    syntax: &str,
) -> Result<T, ArgError> {
    let outside = |low: bool| {
        let limit = match (low, range.start_bound(), range.end_bound()) {
            (true, Bound::Included(least), _) => format!("must be >= {least}"),
            (false, _, Bound::Included(most)) => format!("out of range, bound {most}"),
            _ => "out of range".to_owned(),
        };
        ArgError::new(format!("{text} is out of range; it wants {syntax}")).click(limit)
    };
    let too_low = |value: &T| matches!(range.start_bound(), Bound::Included(low) if value < low);
    match (T::from_arg(text, names), parse_integer(text)) {
        (Ok(value), _) if range.contains(&value) => Ok(value),
        (Ok(value), _) => Err(outside(too_low(&value))),
        (Err(_), Some(n)) => Err(outside(n < 0)),
        (Err(e), None) => Err(ArgError::new(format!("`{text}` is not {syntax}"))
            .click(e.in_click_words().unwrap_or_default())),
    }
}

impl FromArg for f64 {
    const SYNTAX: &'static str = "a real number";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let value = text.parse().ok().filter(|v: &f64| v.is_finite());
        value.ok_or_else(|| wrong::<Self>(text, "invalid real number"))
    }
}

impl FromArg for String {
    const SYNTAX: &'static str = "text";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        Ok(unquote(text))
    }
}

impl FromArg for Formula {
    const SYNTAX: &'static str = "a function of x, such as \"10 + min(90, 10*x)\"";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        Formula::parse(&unquote(text)).map_err(ArgError::new)
    }
}

/// Bytes, as text or `\<68656c6c6f>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data(pub Vec<u8>);

impl From<&str> for Data {
    fn from(text: &str) -> Data {
        Data(text.into())
    }
}

impl FromArg for Data {
    const SYNTAX: &'static str = "data";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        Ok(Data(unquote_bytes(text)))
    }
}

/// The raw words of an argument, for those with a syntax of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// The argument as it was written.
    pub text: String,
    /// Its words, quotes taken off.
    pub words: Vec<String>,
}

impl FromArg for Words {
    const SYNTAX: &'static str = "words";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let words = split_words(text).into_iter();
        Ok(Words { text: text.to_owned(), words: words.map(unquote).collect() })
    }
}

impl FromArg for Ipv4Addr {
    const SYNTAX: &'static str = "an IPv4 address";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let named = || names.resolve(text, AddressKind::Ip)?.parse().ok();
        text.parse().ok().or_else(named).ok_or_else(|| wrong::<Self>(text, "invalid IP address"))
    }
}

impl FromArg for Ipv6Addr {
    const SYNTAX: &'static str = "an IPv6 address";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let named = || names.resolve(text, AddressKind::Ip6)?.parse().ok();
        text.parse().ok().or_else(named).ok_or_else(|| wrong::<Self>(text, "invalid IPv6 address"))
    }
}

impl FromArg for MacAddr {
    const SYNTAX: &'static str = "an Ethernet address";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let named = || names.resolve(text, AddressKind::Mac)?.parse().ok();
        let address = text.parse().ok().or_else(named);
        address.ok_or_else(|| wrong::<Self>(text, "invalid Ethernet address"))
    }
}

/// An IPv4 prefix: `1.0.0.0/8`, `1.0.0.0/255.0.0.0` or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Net {
    /// The address as written, host bits included.
    pub address: Ipv4Addr,
    /// The mask.
    pub mask: Ipv4Addr,
}

impl Net {
    /// Whether `address` lies within.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        (u32::from(address) ^ u32::from(self.address)) & u32::from(self.mask) == 0
    }
    /// How many leading ones the mask has.
    pub fn prefix_len(&self) -> u32 {
        u32::from(self.mask).leading_ones()
    }
    /// The address of all hosts: host bits set.
    pub fn broadcast(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.address) | !u32::from(self.mask))
    }

    /// Whether the address is one of the hosts within.
    pub(super) fn has_host_bits(&self) -> bool {
        u32::from(self.address) & !u32::from(self.mask) != 0
    }

    pub(super) fn parse(text: &str) -> Option<Net> {
        let (address, mask) = text.split_once('/').unwrap_or((text, "32"));
        let mask = match mask.parse::<u32>() {
            Ok(n) if n <= 32 => Ipv4Addr::from(u32::MAX.checked_shl(32 - n).unwrap_or(0)),
            _ => mask.parse().ok()?,
        };
        // `18.26/16` leaves out octets that the mask does not cover.
        let octets = address.split('.').count();
        let full = (octets..4).fold(address.to_owned(), |text, _| text + ".0");
        let covered = u32::MAX.checked_shr(8 * octets as u32).unwrap_or(0) & u32::from(mask) == 0;
        Some(Net { address: full.parse().ok().filter(|_| covered)?, mask })
    }
}

impl FromArg for Net {
    const SYNTAX: &'static str = "an IPv4 prefix";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let named = || {
            let net = names.resolve(text, AddressKind::Net);
            Net::parse(&net.or_else(|| names.resolve(text, AddressKind::Ip))?)
        };
        let net = Net::parse(text).or_else(named);
        net.ok_or_else(|| wrong::<Self>(text, "invalid IP prefix"))
    }
}

/// An IPv6 prefix: `2001:db8::/32`, `2001:db8::/ffff:ffff::` or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Net6 {
    /// The address as written, host bits included.
    pub address: Ipv6Addr,
    /// How many bits all addresses of the prefix have in common.
    pub length: u32,
}

impl Net6 {
    fn parse(text: &str) -> Option<Net6> {
        let (address, length) = text.split_once('/').unwrap_or((text, "128"));
        let length = match length.parse::<u32>() {
            Ok(length) => length,
            Err(_) => {
                let mask = length.parse::<Ipv6Addr>().ok()?.to_bits();
                let contiguous = mask.leading_ones() + mask.trailing_zeros() >= 128;
                contiguous.then(|| mask.leading_ones())?
            }
        };
        Some(Net6 { address: address.parse().ok()?, length }).filter(|net| net.length <= 128)
    }
}

impl FromArg for Net6 {
    const SYNTAX: &'static str = "an IPv6 prefix";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let named = || {
            let net = names.resolve(text, AddressKind::Net6);
            Net6::parse(&net.or_else(|| names.resolve(text, AddressKind::Ip6))?)
        };
        let net = Net6::parse(text).or_else(named);
        net.ok_or_else(|| wrong::<Self>(text, "invalid IPv6 prefix"))
    }
}

/// Splits `1.5kbps` into its number (in millionths) and its unit.
fn scaled(text: &str) -> Option<(i128, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if number.is_empty() || number == "." || whole.len() > 20 {
        return None;
    }
    let fraction: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    Some((whole * 1_000_000 + fraction.parse::<i128>().ok()?, unit.trim()))
}

impl FromArg for Duration {
    const SYNTAX: &'static str = "a time such as 1.5s or 20ms";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let nanos = || {
            let (number, unit) = scaled(text)?;
            let per_unit: i128 = match unit {
                "" | "s" | "sec" => 1_000_000_000,
                "ms" | "msec" => 1_000_000,
                "us" | "usec" => 1_000,
                "ns" | "nsec" => 1,
                "m" | "min" => 60_000_000_000,
                "h" | "hr" => 3_600_000_000_000,
                "d" | "day" => 86_400_000_000_000,
                _ => return None,
            };
            u64::try_from(number.checked_mul(per_unit)? / 1_000_000).ok()
        };
        nanos().map(Duration::from_nanos).ok_or_else(|| wrong::<Self>(text, "invalid timestamp"))
    }
}

/// A bandwidth in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth(pub u64);

impl FromArg for Bandwidth {
    const SYNTAX: &'static str = "a bandwidth such as 10Mbps or 1GB/s";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let bytes = || {
            let (number, unit) = scaled(text)?;
            let (prefix, bits) = match unit {
                "" => ("", false),
                u if u.ends_with("bps") || u.ends_with("b/s") => (&u[..u.len() - 3], true),
                u if u.ends_with("Bps") || u.ends_with("B/s") => (&u[..u.len() - 3], false),
                _ => return None,
            };
            let scale: i128 = match prefix {
                "" => 1,
                "k" | "K" => 1_000,
                "M" => 1_000_000,
                "G" => 1_000_000_000,
                _ => return None,
            };
            let per_second = number.checked_mul(scale)? / 1_000_000;
            u64::try_from(if bits { per_second / 8 } else { per_second }).ok()
        };
        bytes().map(Bandwidth).ok_or_else(|| wrong::<Self>(text, "invalid bandwidth"))
    }
}

/// An annotation by name or, as in Click, by its first byte.
impl FromArg for Anno {
    const SYNTAX: &'static str = "an annotation such as PAINT, or its offset";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let declared = names.resolve(text, AddressKind::Anno);
        let text = declared.as_deref().unwrap_or(text);
        let bare = text.strip_suffix("_ANNO").unwrap_or(text);
        let (offset, size) = bare.split_once('/').unwrap_or((bare, "1"));
        let numbered = || {
            let (offset, size) = (offset.parse().ok()?, size.parse().ok()?);
            let within = size > 0 && offset < anno::SIZE && size <= anno::SIZE - offset;
            within.then_some(Anno { name: "", offset, size })
        };
        let anno = anno::by_name(bare).or_else(numbered);
        anno.ok_or_else(|| wrong::<Self>(text, "invalid annotation"))
    }
}

impl<T: FromArg> FromArg for Option<T> {
    const SYNTAX: &'static str = T::SYNTAX;
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        T::from_arg(text, names).map(Some)
    }
}

/// Several values in one argument, separated by spaces.
impl<T: FromArg> FromArg for Vec<T> {
    const SYNTAX: &'static str = T::SYNTAX;
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        split_words(text).into_iter().map(|w| T::from_arg(w, names)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_ipv6() {
        let said = |text| Net6::from_arg(text, &Names::default());
        let net = |address: &str, length| Net6 { address: address.parse().expect("one"), length };
        assert_eq!(said("2001:db8::1/32"), Ok(net("2001:db8::1", 32)));
        assert_eq!(said("2001:db8::/ffff:fff0::"), Ok(net("2001:db8::", 28)));
        assert_eq!(said("::1"), Ok(net("::1", 128)));
        for bad in ["1.2.3.4", "::/129", "::/f0f0::", "x"] {
            assert!(said(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ranges_are_kept_and_named() {
        const SYNTAX: &str = "a number from 8 to 63";
        let said = |text| within::<u8>(text, &Names::default(), &(8..=63), SYNTAX);
        assert_eq!((said("8"), said("0x3f")), (Ok(8), Ok(63)));
        for (text, castanet, click) in [
            ("7", "7 is out of range; it wants a number from 8 to 63", "must be >= 8"),
            ("-1", "-1 is out of range; it wants a number from 8 to 63", "must be >= 8"),
            ("64", "64 is out of range; it wants a number from 8 to 63", "out of range, bound 63"),
            (
                "256",
                "256 is out of range; it wants a number from 8 to 63",
                "out of range, bound 63",
            ),
            ("ef", "`ef` is not a number from 8 to 63", "invalid number"),
        ] {
            let error = said(text).expect_err("is refused");
            assert_eq!(error.to_string(), castanet);
            assert_eq!(error.in_click_words().as_deref(), Some(click));
        }
    }
}
