//! Ethernet (EUI-48) addresses.

use std::fmt;
use std::str::FromStr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An Ethernet address, printed as Click does: `00-01-02-03-04-05`.
#[derive(
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Unaligned,
    KnownLayout,
    Immutable,
)]
#[repr(transparent)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// All zeros, which stands for no address.
    pub const ZERO: MacAddr = MacAddr([0; 6]);
    /// The broadcast address: all ones.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);

    /// The six bytes in transmission order.
    #[inline]
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// Whether this is the broadcast address.
    #[inline]
    pub fn is_broadcast(self) -> bool {
        self == MacAddr::BROADCAST
    }

    /// Whether this is a group address (IEEE 802.3, I/G bit); true for broadcast too.
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether this is the address of a single station.
    #[inline]
    pub const fn is_unicast(self) -> bool {
        !self.is_multicast()
    }

    /// Whether the address is locally administered (IEEE 802, U/L bit).
    #[inline]
    pub const fn is_local(self) -> bool {
        self.0[0] & 2 != 0
    }

    /// Whether the address is all zeros.
    #[inline]
    pub fn is_zero(self) -> bool {
        self == MacAddr::ZERO
    }

    /// The group address of an IPv4 multicast group (RFC 1112, 6.4).
    pub const fn from_ipv4_group(group: std::net::Ipv4Addr) -> MacAddr {
        let [_, b, c, d] = group.octets();
        MacAddr([1, 0, 0x5e, b & 0x7f, c, d])
    }

    /// The group address of an IPv6 multicast group (RFC 2464, 7).
    pub const fn from_ipv6_group(group: std::net::Ipv6Addr) -> MacAddr {
        let [.., a, b, c, d] = group.octets();
        MacAddr([0x33, 0x33, a, b, c, d])
    }

    /// The address as a number, with the first byte most significant.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// The address whose number is the low 48 bits of `bits`.
    #[inline]
    pub const fn from_u64(bits: u64) -> MacAddr {
        let [_, _, a, b, c, d, e, f] = bits.to_be_bytes();
        MacAddr([a, b, c, d, e, f])
    }

    /// Formats the address with colons, as `ip link` and tcpdump do.
    pub fn with_colons(self) -> impl fmt::Display {
        MacFormat(self, ':')
    }
}

/// An address and the separator of its bytes.
struct MacFormat(MacAddr, char);

impl fmt::Display for MacFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MacFormat(MacAddr([a, b, c, d, e, g]), s) = self;
        write!(f, "{a:02X}{s}{b:02X}{s}{c:02X}{s}{d:02X}{s}{e:02X}{s}{g:02X}")
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.width().is_some() {
            return f.pad(&MacFormat(*self, '-').to_string());
        }
        MacFormat(*self, '-').fmt(f)
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<[u8; 6]> for MacAddr {
    fn from(octets: [u8; 6]) -> Self {
        MacAddr(octets)
    }
}

/// Error: a text is not an Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacAddrError;

impl fmt::Display for MacAddrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not six hexadecimal bytes with ':' or '-' between them")
    }
}

impl std::error::Error for MacAddrError {}

impl FromStr for MacAddr {
    type Err = MacAddrError;

    /// Parses six bytes of one or two hexadecimal digits, all separated by `:` or
    /// all by `-`.
    fn from_str(text: &str) -> Result<Self, MacAddrError> {
        let separator = if text.contains(':') { ':' } else { '-' };
        let mut octets = [0; 6];
        let mut words = text.split(separator);
        for octet in &mut octets {
            let word = words.next().ok_or(MacAddrError)?;
            // `from_str_radix` would accept a sign.
            if word.is_empty() || word.len() > 2 || !word.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(MacAddrError);
            }
            *octet = u8::from_str_radix(word, 16).map_err(|_| MacAddrError)?;
        }
        words.next().is_none().then_some(MacAddr(octets)).ok_or(MacAddrError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_dashes_and_parses_dashes_and_colons() {
        let mac = MacAddr([0, 1, 2, 0xab, 0xcd, 0xef]);
        assert_eq!(mac.to_string(), "00-01-02-AB-CD-EF");
        assert_eq!(mac.with_colons().to_string(), "00:01:02:AB:CD:EF");
        assert_eq!("00-01-02-ab-CD-ef".parse(), Ok(mac));
        assert_eq!("0:1:2:ab:cd:ef".parse(), Ok(mac));
        assert_eq!(format!("[{mac:>19}]"), "[  00-01-02-AB-CD-EF]");
    }

    #[test]
    fn rejects_invalid_addresses() {
        for text in [
            "",
            "0:1:2:3:4",
            "0:1:2:3:4:5:6",
            "0:1:2:3:4:",
            "0:1-2:3:4:5",
            "+1:2:3:4:5:6",
            "100:2:3:4:5:6",
            "é:1:2:3:4:5",
        ] {
            assert_eq!(text.parse::<MacAddr>(), Err(MacAddrError), "{text}");
        }
    }

    #[test]
    fn recognises_group_addresses() {
        assert!(MacAddr::BROADCAST.is_broadcast() && MacAddr::BROADCAST.is_multicast());
        let group = MacAddr::from_ipv4_group([239, 129, 2, 3].into());
        assert_eq!(group, MacAddr([1, 0, 0x5e, 1, 2, 3]));
        let group6 = MacAddr::from_ipv6_group([0xff02, 0, 0, 0, 0, 1, 0xff12, 0x3456].into());
        assert_eq!(group6, MacAddr([0x33, 0x33, 0xff, 0x12, 0x34, 0x56]));
        assert!(group.is_multicast() && !group.is_broadcast() && !group.is_unicast());
        assert!(MacAddr([2, 0, 0, 0, 0, 1]).is_local());
        assert!(MacAddr::ZERO.is_zero() && MacAddr::ZERO.is_unicast());
    }

    #[test]
    fn converts_to_and_from_numbers() {
        let mac = MacAddr([1, 2, 3, 4, 5, 6]);
        assert_eq!(mac.to_u64(), 0x0102_0304_0506);
        assert_eq!(MacAddr::from_u64(0xffff_0102_0304_0506), mac);
    }
}
