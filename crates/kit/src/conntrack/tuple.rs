//! Tuples: addresses, ports and protocol of a packet, as keys of one address family and for either.

use super::Key;
use crate::seed::Seed;
use castanet_wire::checksum::Delta;
use castanet_wire::{Ipv4Header, Ipv6Header, ip_proto, transport, udp};
use std::fmt::{Debug, Formatter};
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address of one family.
pub trait Address: Copy + Ord + Into<IpAddr> {
    /// Source, destination, ports, and the zone with the protocol, as words that are compared at
    /// once.
    type Words: Copy + Eq + Hash;
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

    /// The address as a number.
    fn into_bits(self) -> impl Ord;

    /// The words of a key.
    fn pack(parts: TupleParts<Self>) -> Self::Words;

    /// The parts of a key.
    fn unpack(words: Self::Words) -> TupleParts<Self>;

    /// A hash of a key.
    fn hash(words: Self::Words, seed: &Seed) -> u64;
}

/// The parts of a [`TupleKey`].
#[derive(Clone, Copy)]
pub struct TupleParts<A> {
    src: A,
    dst: A,
    ports: u32,
    /// The zone, and the protocol.
    rest: u32,
}

/// A word of two words.
#[inline]
fn join(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

impl Address for Ipv4Addr {
    type Words = [u32; 4];
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
    fn into_bits(self) -> impl Ord {
        self.to_bits()
    }

    #[inline]
    fn pack(parts: TupleParts<Ipv4Addr>) -> [u32; 4] {
        [parts.src.to_bits(), parts.dst.to_bits(), parts.ports, parts.rest]
    }

    #[inline]
    fn unpack([src, dst, ports, rest]: [u32; 4]) -> TupleParts<Ipv4Addr> {
        TupleParts { src: Ipv4Addr::from_bits(src), dst: Ipv4Addr::from_bits(dst), ports, rest }
    }

    #[inline]
    fn hash([src, dst, ports, rest]: [u32; 4], seed: &Seed) -> u64 {
        seed.mix(join(src, dst), join(ports, rest))
    }
}

impl Address for Ipv6Addr {
    type Words = [u32; 10];
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
    fn into_bits(self) -> impl Ord {
        self.to_bits()
    }

    #[inline]
    fn pack(parts: TupleParts<Ipv6Addr>) -> [u32; 10] {
        let words =
            |address: Ipv6Addr| [96, 64, 32, 0].map(|bit| (address.to_bits() >> bit) as u32);
        let ([a, b, c, d], [e, f, g, h]) = (words(parts.src), words(parts.dst));
        [a, b, c, d, e, f, g, h, parts.ports, parts.rest]
    }

    #[inline]
    fn unpack([a, b, c, d, e, f, g, h, ports, rest]: [u32; 10]) -> TupleParts<Ipv6Addr> {
        let address = |[a, b, c, d]: [u32; 4]| {
            Ipv6Addr::from_bits(u128::from(join(a, b)) << u64::BITS | u128::from(join(c, d)))
        };
        TupleParts { src: address([a, b, c, d]), dst: address([e, f, g, h]), ports, rest }
    }

    #[inline]
    fn hash([a, b, c, d, e, f, g, h, ports, rest]: [u32; 10], seed: &Seed) -> u64 {
        let (src, dst) = (seed.mix(join(a, b), join(c, d)), seed.mix(join(e, f), join(g, h)));
        seed.mix(seed.mix(src, dst.rotate_left(32)), join(ports, rest))
    }
}

/// Addresses, ports, protocol, and the zone, which separates networks with the same addresses. ICMP
/// has its identifier in place of both ports. The protocol of IPv6 is that after the extension
/// headers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TupleKey<A: Address> {
    words: A::Words,
}

/// The key of IPv4.
pub type Tuple4 = TupleKey<Ipv4Addr>;
/// The key of IPv6.
pub type Tuple6 = TupleKey<Ipv6Addr>;

impl<A: Address> Default for TupleKey<A> {
    fn default() -> Self {
        TupleKey::of_parts(TupleParts { src: A::NONE, dst: A::NONE, ports: 0, rest: 0 })
    }
}

impl<A: Address> Debug for TupleKey<A> {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        write!(f, "{:?} in zone {}", self.tuple(), self.zone())
    }
}

impl<A: Address> TupleKey<A> {
    #[inline]
    fn of_parts(parts: TupleParts<A>) -> Self {
        TupleKey { words: A::pack(parts) }
    }

    #[inline]
    fn parts(self) -> TupleParts<A> {
        A::unpack(self.words)
    }

    /// A packet's tuple, in zone 0.
    #[inline]
    pub fn new(src: (A, u16), dst: (A, u16), proto: u8) -> Self {
        let ports = u32::from(src.1) << 16 | u32::from(dst.1);
        TupleKey::of_parts(TupleParts { src: src.0, dst: dst.0, ports, rest: proto.into() })
    }

    /// The tuple of a packet of TCP or UDP, by its bytes from the IP header and from the transport
    /// header on.
    #[inline]
    pub fn of_packet(header: &[u8], segment: &[u8], proto: u8) -> Option<Self> {
        let (src, dst) = A::of_header(header)?;
        let (sport, dport) = udp::ports(segment)?;
        Some(TupleKey::new((src, sport), (dst, dport), proto))
    }

    /// Both addresses.
    #[inline]
    pub(super) fn addresses(&self) -> (A, A) {
        let TupleParts { src, dst, .. } = self.parts();
        (src, dst)
    }

    /// Both ports, that of the source in the upper half.
    #[inline]
    pub(super) fn ports(&self) -> u32 {
        self.parts().ports
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
        let parts = self.parts();
        let rest = parts.rest & 0xffff | u32::from(zone) << 16;
        TupleKey::of_parts(TupleParts { rest, ..parts })
    }

    /// The zone.
    #[inline]
    pub fn zone(&self) -> u16 {
        (self.parts().rest >> 16) as u16
    }

    /// The source's address and port.
    #[inline]
    pub fn src(&self) -> (A, u16) {
        let TupleParts { src, ports, .. } = self.parts();
        (src, (ports >> 16) as u16)
    }

    /// The destination's address and port.
    #[inline]
    pub fn dst(&self) -> (A, u16) {
        let TupleParts { dst, ports, .. } = self.parts();
        (dst, ports as u16)
    }

    /// The protocol.
    #[inline]
    pub fn proto(&self) -> u8 {
        self.parts().rest as u8
    }

    /// The tuple of packets in the opposite direction.
    #[inline]
    #[must_use]
    pub fn reversed(self) -> Self {
        let TupleParts { src, dst, ports, rest } = self.parts();
        TupleKey::of_parts(TupleParts { src: dst, dst: src, ports: ports.rotate_left(16), rest })
    }

    /// The key that both directions have in common, and whether this tuple is the direction from
    /// the greater endpoint.
    #[inline]
    pub fn ordered(self) -> (Self, bool) {
        let TupleParts { src, dst, ports, .. } = self.parts();
        let swap = (src.into_bits(), ports >> 16) > (dst.into_bits(), ports & 0xffff);
        (if swap { self.reversed() } else { self }, swap)
    }
}

impl Tuple4 {
    /// Whether both are the same, compared in registers: where one has just been made, a comparison in
    /// memory would wait for its stores.
    #[inline]
    pub(crate) fn equals(&self, other: &Tuple4) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.words, other.words);
        (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) == 0
    }

    /// The tuple of a packet of TCP or UDP without IP options that is no fragment, by its bytes from the IP
    /// header on, without link padding; `None` for all others, and for those that end in the first eight bytes
    /// behind it.
    #[inline]
    pub fn of_plain(datagram: &[u8]) -> Option<Tuple4> {
        let (header, segment) = datagram.split_first_chunk()?;
        let ip = Ipv4Header::from_array(header);
        let ports = segment.first_chunk::<{ transport::PORTS_LEN }>()?.first_chunk()?;
        let is_plain = ip.is_plain() && !ip.is_fragment();
        let is_tcp_or_udp = matches!(ip.protocol(), ip_proto::TCP | ip_proto::UDP);
        (is_plain && is_tcp_or_udp).then(|| {
            let (ports, rest) = (u32::from_be_bytes(*ports), ip.protocol().into());
            TupleKey::of_parts(TupleParts { src: ip.src(), dst: ip.dst(), ports, rest })
        })
    }
}

impl<A: Address> Key for TupleKey<A> {
    #[inline]
    fn hash(&self, seed: &Seed) -> u64 {
        A::hash(self.words, seed)
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
