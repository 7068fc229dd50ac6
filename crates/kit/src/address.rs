//! IPv4 and IPv6 addresses as integers.

use castanet_wire::print::Ip6Text;
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::text::{length_of, mask_of, parse_ipv4, parse_ipv4_prefix};

/// An address in host byte order: `u32` for IPv4, `u128` for IPv6.
pub trait Address: Copy + Ord + Hash + Debug + Send + Sync + 'static {
    /// The number of bits.
    const BITS: u32;
    /// The unspecified address.
    const ZERO: Self;
    /// The standard library's type, for parsing and printing.
    type StdAddress: Display + FromStr + From<Self> + Into<Self>;
    /// The lowest bits of the address shifted right by `shift`, which must be less than
    /// [`Address::BITS`]: 32, or as far as they lie in the same 64 bits of the address.
    fn high_bits(self, shift: u32) -> u32;
    /// The address with the bits after a prefix of this length cleared.
    fn prefix(self, length: u32) -> Self;
    /// Parses an address.
    fn parse(text: &str) -> Option<Self>;
    /// Parses a prefix, `ADDR/LENGTH` or `ADDR/MASK`, to address and length. The address keeps its
    /// host bits.
    fn parse_prefix(text: &str) -> Option<(Self, u32)>;
    /// The text of the address, in Click's form.
    fn shown(self) -> String;
}

impl Address for u32 {
    const BITS: u32 = 32;
    const ZERO: u32 = 0;
    type StdAddress = Ipv4Addr;

    #[inline(always)]
    fn high_bits(self, shift: u32) -> u32 {
        self >> shift
    }

    #[inline]
    fn prefix(self, length: u32) -> u32 {
        self & mask_of(length).unwrap_or(u32::MAX)
    }

    fn parse(text: &str) -> Option<u32> {
        parse_ipv4(text)
    }

    fn parse_prefix(text: &str) -> Option<(u32, u32)> {
        let (address, mask) = parse_ipv4_prefix(text)?;
        Some((address, length_of(mask)?))
    }

    fn shown(self) -> String {
        Ipv4Addr::from_bits(self).to_string()
    }
}

impl Address for u128 {
    const BITS: u32 = 128;
    const ZERO: u128 = 0;
    type StdAddress = Ipv6Addr;

    #[inline(always)]
    fn high_bits(self, shift: u32) -> u32 {
        // A shift of 128 bits takes twice as many instructions.
        let half = if shift >= u64::BITS { (self >> u64::BITS) as u64 } else { self as u64 };
        (half >> (shift % u64::BITS)) as u32
    }

    #[inline]
    fn prefix(self, length: u32) -> u128 {
        match length {
            0 => 0,
            1..128 => self & u128::MAX << (128 - length),
            _ => self,
        }
    }

    fn parse(text: &str) -> Option<u128> {
        text.parse().ok().map(Ipv6Addr::to_bits)
    }

    fn parse_prefix(text: &str) -> Option<(u128, u32)> {
        let (address, length) = text.split_once('/')?;
        let length = match length.parse::<u32>() {
            Ok(length) => Some(length).filter(|&length| length <= 128),
            Err(_) => u128::parse(length).and_then(|mask| {
                let contiguous = mask.leading_ones() + mask.trailing_zeros() >= 128;
                contiguous.then(|| mask.leading_ones())
            }),
        };
        Some((u128::parse(address)?, length?))
    }

    fn shown(self) -> String {
        Ip6Text(Ipv6Addr::from_bits(self)).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_ipv6() {
        let (address, length) = u128::parse_prefix("2001:db8::1/32").expect("a prefix");
        assert_eq!((address.prefix(length), length), (0x2001_0db8 << 96, 32));
        assert_eq!(u128::parse_prefix("2001:db8::/ffff:fff0::").expect("a prefix").1, 28);
        assert_eq!(u128::parse_prefix("::/0"), Some((0, 0)));
        assert_eq!(u128::parse_prefix("::1/128"), Some((1, 128)));
        for bad in ["::1", "::1/129", "1.0.0.0/8", "::/f0f0::", "::/-1", "x/3"] {
            assert_eq!(u128::parse_prefix(bad), None, "{bad}");
        }
        assert_eq!((u128::MAX.prefix(0), u128::MAX.prefix(128)), (0, u128::MAX));
        assert_eq!(u128::MAX.prefix(1), 1 << 127);
        assert_eq!((1u128 << 127).high_bits(96), 1 << 31);
        for shift in (0..128).step_by(8) {
            assert_eq!((0xa5_u128 << shift).high_bits(shift) & 255, 0xa5, "{shift}");
            assert_eq!(u128::MAX.high_bits(shift) & 255, 255, "{shift}");
        }
    }
}
