//! Tuples: addresses, ports and protocol of a packet, as keys of one address family and for either.

use super::Key;
use crate::seed::Seed;
use castanet_wire::checksum::Delta;
use castanet_wire::{Ipv4Header, Ipv6Header, ip_proto, udp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address of one family.
pub trait Address: Copy + Ord + Into<IpAddr> {
    /// The unspecified address.
    const NONE: Self;
    /// The protocol of ICMP.
    const ICMP: u8;

    /// The address as one of this family; [`Address::NONE`] if it is of the other.
    fn of_any(address: IpAddr) -> Self;

    /// The source and the destination in an IP header of this family.
    fn of_header(header: &[u8]) -> Option<(Self, Self)>;

    /// Rewrites the source and the destination in an IP header, with its checksum. Returns the
    /// change for checksums over the pseudo header.
    fn rewrite(header: &mut [u8], new: impl FnOnce((Self, Self)) -> (Self, Self)) -> Option<Delta>;

    /// A hash of two addresses and a word.
    fn hash(src: Self, dst: Self, word: u64, seed: &Seed) -> u64;
}

impl Address for Ipv4Addr {
    const NONE: Self = Ipv4Addr::UNSPECIFIED;
    const ICMP: u8 = ip_proto::ICMP;

    #[inline]
    fn of_any(address: IpAddr) -> Ipv4Addr {
        match address {
            IpAddr::V4(address) => address,
            IpAddr::V6(_) => Ipv4Addr::NONE,
        }
    }

    #[inline]
    fn of_header(header: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
        let (ip, _) = Ipv4Header::from_prefix(header)?;
        Some((ip.src(), ip.dst()))
    }

    #[inline]
    fn rewrite(header: &mut [u8], new: impl FnOnce((Self, Self)) -> (Self, Self)) -> Option<Delta> {
        let (ip, _) = Ipv4Header::from_prefix_mut(header)?;
        let (src, dst) = new((ip.src(), ip.dst()));
        let delta = Delta::new().addr(ip.src(), src).addr(ip.dst(), dst);
        ip.set_src(src);
        ip.set_dst(dst);
        ip.adjust_checksum(delta);
        Some(delta)
    }

    #[inline]
    fn hash(src: Ipv4Addr, dst: Ipv4Addr, word: u64, seed: &Seed) -> u64 {
        seed.mix(u64::from(src.to_bits()) << 32 | u64::from(dst.to_bits()), word)
    }
}

impl Address for Ipv6Addr {
    const NONE: Self = Ipv6Addr::UNSPECIFIED;
    const ICMP: u8 = ip_proto::ICMPV6;

    #[inline]
    fn of_any(address: IpAddr) -> Ipv6Addr {
        match address {
            IpAddr::V4(_) => Ipv6Addr::NONE,
            IpAddr::V6(address) => address,
        }
    }

    #[inline]
    fn of_header(header: &[u8]) -> Option<(Ipv6Addr, Ipv6Addr)> {
        let (ip, _) = Ipv6Header::from_prefix(header)?;
        Some((ip.src(), ip.dst()))
    }

    fn rewrite(header: &mut [u8], new: impl FnOnce((Self, Self)) -> (Self, Self)) -> Option<Delta> {
        let (ip, _) = Ipv6Header::from_prefix_mut(header)?;
        let (src, dst) = new((ip.src(), ip.dst()));
        let delta = Delta::new().addr6(ip.src(), src).addr6(ip.dst(), dst);
        ip.set_src(src);
        ip.set_dst(dst);
        Some(delta)
    }

    #[inline]
    fn hash(src: Ipv6Addr, dst: Ipv6Addr, word: u64, seed: &Seed) -> u64 {
        let mix = |bits: u128| seed.mix((bits >> u64::BITS) as u64, bits as u64);
        seed.mix(seed.mix(mix(src.to_bits()), mix(dst.to_bits()).rotate_left(32)), word)
    }
}

/// Addresses, ports, protocol, and the zone, which separates networks with the same addresses. ICMP
/// has its identifier in place of both ports. The protocol of IPv6 is that after the extension
/// headers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TupleKey<A> {
    src: A,
    dst: A,
    ports: u32,
    /// The zone, and the protocol.
    rest: u32,
}

/// The key of IPv4.
pub type Tuple4 = TupleKey<Ipv4Addr>;
/// The key of IPv6.
pub type Tuple6 = TupleKey<Ipv6Addr>;

impl<A: Address> Default for TupleKey<A> {
    fn default() -> Self {
        TupleKey { src: A::NONE, dst: A::NONE, ports: 0, rest: 0 }
    }
}

impl<A: Address> TupleKey<A> {
    /// A packet's tuple, in zone 0.
    #[inline]
    pub fn new(src: (A, u16), dst: (A, u16), proto: u8) -> Self {
        let ports = u32::from(src.1) << 16 | u32::from(dst.1);
        TupleKey { src: src.0, dst: dst.0, ports, rest: proto.into() }
    }

    /// The tuple of a packet of TCP or UDP, by its bytes from the IP header and from the transport
    /// header on.
    #[inline]
    pub fn of_packet(header: &[u8], segment: &[u8], proto: u8) -> Option<Self> {
        let (src, dst) = A::of_header(header)?;
        let (sport, dport) = udp::ports(segment)?;
        Some(TupleKey::new((src, sport), (dst, dport), proto))
    }

    /// A tuple of this family as a key.
    #[inline]
    pub fn of_tuple(tuple: &Tuple) -> Self {
        let [src, dst] = [tuple.src, tuple.dst].map(|(ip, port)| (A::of_any(ip), port));
        TupleKey::new(src, dst, tuple.proto)
    }

    /// The key as a tuple of either family.
    #[inline]
    pub fn tuple(&self) -> Tuple {
        let [src, dst] = [self.src(), self.dst()].map(|(ip, port)| (ip.into(), port));
        Tuple { src, dst, proto: self.proto() }
    }

    /// The same tuple in another zone.
    #[inline]
    #[must_use]
    pub fn in_zone(self, zone: u16) -> Self {
        TupleKey { rest: self.rest & 0xffff | u32::from(zone) << 16, ..self }
    }

    /// The zone.
    #[inline]
    pub fn zone(&self) -> u16 {
        (self.rest >> 16) as u16
    }

    /// The source's address and port.
    #[inline]
    pub fn src(&self) -> (A, u16) {
        (self.src, (self.ports >> 16) as u16)
    }

    /// The destination's address and port.
    #[inline]
    pub fn dst(&self) -> (A, u16) {
        (self.dst, self.ports as u16)
    }

    /// The protocol.
    #[inline]
    pub fn proto(&self) -> u8 {
        self.rest as u8
    }

    /// The tuple of packets in the opposite direction.
    #[inline]
    #[must_use]
    pub fn reversed(self) -> Self {
        TupleKey { src: self.dst, dst: self.src, ports: self.ports.rotate_left(16), ..self }
    }

    /// The key that both directions have in common, and whether this tuple is the direction from
    /// the greater endpoint.
    #[inline]
    pub fn ordered(self) -> (Self, bool) {
        let swap = self.src() > self.dst();
        (if swap { self.reversed() } else { self }, swap)
    }
}

impl<A: Address> Key for TupleKey<A> {
    #[inline]
    fn hash(&self, seed: &Seed) -> u64 {
        A::hash(self.src, self.dst, u64::from(self.ports) << 32 | u64::from(self.rest), seed)
    }
}

/// A tuple of either family, without a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuple {
    /// The source's address and port.
    pub src: (IpAddr, u16),
    /// The destination's address and port.
    pub dst: (IpAddr, u16),
    /// The protocol, after extension headers.
    pub proto: u8,
}

impl Tuple {
    /// Whether the addresses are IPv6.
    #[inline]
    pub fn is_ip6(&self) -> bool {
        self.src.0.is_ipv6()
    }

    /// The tuple of the opposite direction.
    #[must_use]
    pub fn reversed(self) -> Tuple {
        Tuple { src: self.dst, dst: self.src, ..self }
    }
}
