//! The key of a flow: addresses, ports, protocol and zone.

use super::{Key, Seed};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Addresses, ports, protocol, and the zone, which separates networks with the same addresses. ICMP
/// has its identifier in place of both ports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Tuple4([u32; 4]);

impl Tuple4 {
    /// A packet's tuple, in zone 0.
    #[inline]
    pub fn new(src: (Ipv4Addr, u16), dst: (Ipv4Addr, u16), proto: u8) -> Tuple4 {
        let ends = [src.0.to_bits(), dst.0.to_bits()];
        Tuple4([ends[0], ends[1], ports(src.1, dst.1), proto.into()])
    }

    /// The same tuple in another zone.
    #[inline]
    #[must_use]
    pub fn in_zone(self, zone: u16) -> Tuple4 {
        let Tuple4([src, dst, ports, rest]) = self;
        Tuple4([src, dst, ports, rest & 0xffff | u32::from(zone) << 16])
    }

    /// The zone.
    #[inline]
    pub fn zone(&self) -> u16 {
        (self.0[3] >> 16) as u16
    }

    /// The source's address and port.
    #[inline]
    pub fn src(&self) -> (Ipv4Addr, u16) {
        (Ipv4Addr::from_bits(self.0[0]), (self.0[2] >> 16) as u16)
    }

    /// The destination's address and port.
    #[inline]
    pub fn dst(&self) -> (Ipv4Addr, u16) {
        (Ipv4Addr::from_bits(self.0[1]), self.0[2] as u16)
    }

    /// The IP protocol.
    #[inline]
    pub fn proto(&self) -> u8 {
        self.0[3] as u8
    }

    /// The tuple of packets in the opposite direction.
    #[inline]
    #[must_use]
    pub fn reversed(self) -> Tuple4 {
        let Tuple4([src, dst, ports, rest]) = self;
        Tuple4([dst, src, ports.rotate_left(16), rest])
    }

    /// The key that both directions have in common, and whether this tuple is the direction from
    /// the greater endpoint.
    #[inline]
    pub fn ordered(self) -> (Tuple4, bool) {
        let swap = self.src() > self.dst();
        (if swap { self.reversed() } else { self }, swap)
    }
}

impl Key for Tuple4 {
    #[inline]
    fn hash(&self, seed: &Seed) -> u64 {
        let Tuple4([src, dst, ports, rest]) = *self;
        seed.mix(word(src, dst), word(ports, rest))
    }
}

/// The IPv6 tuple; the protocol is that after the extension headers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Tuple6([u32; 10]);

impl Tuple6 {
    /// A packet's tuple, in zone 0.
    pub fn new(src: (Ipv6Addr, u16), dst: (Ipv6Addr, u16), proto: u8) -> Tuple6 {
        let words = |ip: Ipv6Addr| [96, 64, 32, 0].map(|bit| (ip.to_bits() >> bit) as u32);
        let ([a, b, c, d], [e, f, g, h]) = (words(src.0), words(dst.0));
        Tuple6([a, b, c, d, e, f, g, h, ports(src.1, dst.1), proto.into()])
    }

    /// The same tuple in another zone.
    #[must_use]
    pub fn in_zone(mut self, zone: u16) -> Tuple6 {
        self.0[9] = self.0[9] & 0xffff | u32::from(zone) << 16;
        self
    }

    /// The zone.
    pub fn zone(&self) -> u16 {
        (self.0[9] >> 16) as u16
    }

    /// The source's address and port.
    pub fn src(&self) -> (Ipv6Addr, u16) {
        (self.address(0), (self.0[8] >> 16) as u16)
    }

    /// The destination's address and port.
    pub fn dst(&self) -> (Ipv6Addr, u16) {
        (self.address(4), self.0[8] as u16)
    }

    fn address(&self, at: usize) -> Ipv6Addr {
        let words = self.0[at..at + 4].iter();
        Ipv6Addr::from_bits(words.fold(0, |bits, &word| bits << 32 | u128::from(word)))
    }

    /// The protocol after the extension headers.
    pub fn proto(&self) -> u8 {
        self.0[9] as u8
    }

    /// The tuple of packets in the opposite direction.
    #[inline]
    #[must_use]
    pub fn reversed(self) -> Tuple6 {
        let Tuple6([a, b, c, d, e, f, g, h, ports, rest]) = self;
        Tuple6([e, f, g, h, a, b, c, d, ports.rotate_left(16), rest])
    }

    /// The key that both directions have in common, and whether this tuple is the direction from
    /// the greater endpoint.
    #[inline]
    pub fn ordered(self) -> (Tuple6, bool) {
        let swap = self.src() > self.dst();
        (if swap { self.reversed() } else { self }, swap)
    }
}

impl Key for Tuple6 {
    #[inline]
    fn hash(&self, seed: &Seed) -> u64 {
        let Tuple6([a, b, c, d, e, f, g, h, ports, rest]) = *self;
        let src = seed.mix(word(a, b), word(c, d));
        let dst = seed.mix(word(e, f), word(g, h));
        seed.mix(seed.mix(src, dst.rotate_left(32)), word(ports, rest))
    }
}

#[inline]
fn ports(src: u16, dst: u16) -> u32 {
    u32::from(src) << 16 | u32::from(dst)
}

#[inline]
fn word(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
