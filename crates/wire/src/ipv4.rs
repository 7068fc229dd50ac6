//! IPv4 headers (RFC 791, RFC 2474, RFC 3168) and their options.

use crate::checksum::{self, Delta, Sum};
use crate::options::RawOptions;
use crate::{Tcp, Udp, ip_proto};
use std::net::Ipv4Addr;

/// Option: record route.
pub const OPTION_RECORD_ROUTE: u8 = 7;
/// Option: timestamp.
pub const OPTION_TIMESTAMP: u8 = 68;
/// Option: security (RFC 1108).
pub const OPTION_SECURITY: u8 = 130;
/// Option: loose source route.
pub const OPTION_LOOSE_ROUTE: u8 = 131;
/// Option: stream identifier.
pub const OPTION_STREAM: u8 = 136;
/// Option: strict source route.
pub const OPTION_STRICT_ROUTE: u8 = 137;
/// Option: router alert (RFC 2113).
pub const OPTION_ROUTER_ALERT: u8 = 148;

header! {
    /// The fixed part of an IPv4 header.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |Version|  IHL  |   DSCP    |ECN|          Total Length         |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |         Identification        |Flags|      Fragment Offset    |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |  Time to Live |    Protocol   |         Header Checksum       |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                       Source Address                          |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                    Destination Address                        |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Ipv4Header [20] {
        /// Version and header length, as one byte.
        version_ihl, set_version_ihl: u8 = VERSION_IHL @ 0;
        /// Type of service: DSCP and ECN, as one byte.
        tos, set_tos: u8 = TOS @ 1;
        /// Length of header and payload in bytes.
        total_len, set_total_len: u16 = TOTAL_LEN @ 2;
        /// Identification: equal in all fragments of a packet.
        id, set_id: u16 = ID @ 4;
        /// Flags and fragment offset, as one word.
        fragment_word, set_fragment_word: u16 = FRAGMENT_WORD @ 6;
        /// Time to live: maximum number of remaining hops.
        ttl, set_ttl: u8 = TTL @ 8;
        /// Protocol of the payload (see [`ip_proto`](crate::ip_proto)).
        protocol, set_protocol: u8 = PROTOCOL @ 9;
        /// Checksum over the header with its options.
        checksum, set_checksum: u16 = CHECKSUM @ 10;
        /// Source address.
        src, set_src: Ipv4Addr = SRC @ 12;
        /// Destination address.
        dst, set_dst: Ipv4Addr = DST @ 16;
    }
}

impl Ipv4Header {
    /// Flag in the fragment word: reserved, must be zero.
    pub const RESERVED_FLAG: u16 = 0x8000;
    /// Flag DF in the fragment word: routers must not fragment.
    pub const DONT_FRAGMENT: u16 = 0x4000;
    /// Flag MF in the fragment word: not the last fragment.
    pub const MORE_FRAGMENTS: u16 = 0x2000;
    /// Fragment offset in the fragment word, in units of 8 bytes.
    pub const OFFSET_MASK: u16 = 0x1fff;

    /// Makes a header without options: DF clear, TTL 64, correct checksum.
    #[inline]
    pub fn new(protocol: u8, src: Ipv4Addr, dst: Ipv4Addr, total_len: u16) -> Self {
        let mut header = Ipv4Header([0; 20]);
        header.fill((src, dst), (64, protocol), (total_len, 0));
        header
    }

    /// Writes all fields of a header without options: addresses, TTL and protocol, total length and
    /// identification; DF clear, correct checksum. The checksum is that of the values: a processor
    /// waits where fields that were just written are read in wider words.
    #[inline(always)]
    pub fn fill(
        &mut self,
        (src, dst): (Ipv4Addr, Ipv4Addr),
        (ttl, protocol): (u8, u8),
        (total_len, id): (u16, u16),
    ) {
        const VERSION_IHL_TOS: u16 = 0x4500;
        let sum = Sum::new().u16(VERSION_IHL_TOS).u16(total_len).u16(id);
        let sum = sum.u16(u16::from_be_bytes([ttl, protocol])).u32(src.to_bits());
        let checksum = sum.u32(dst.to_bits()).checksum();
        let [version_ihl, tos] = VERSION_IHL_TOS.to_be_bytes();
        self.set_version_ihl(version_ihl);
        self.set_tos(tos);
        self.set_total_len(total_len);
        self.set_id(id);
        self.set_fragment_word(0);
        self.set_ttl(ttl);
        self.set_protocol(protocol);
        self.set_checksum(checksum);
        self.set_src(src);
        self.set_dst(dst);
    }

    /// IP version; 4 in a valid header.
    #[inline(always)]
    pub fn version(&self) -> u8 {
        self.version_ihl() >> 4
    }

    /// Length of the header with options in bytes, 0 to 60; less than 20 is
    /// invalid.
    #[inline(always)]
    pub fn header_len(&self) -> usize {
        usize::from(self.version_ihl() & 0xf) * 4
    }

    /// Sets version 4 and the header length, in bytes, a multiple of 4 of at most 60.
    #[inline]
    pub fn set_header_len(&mut self, len: usize) {
        self.set_version_ihl(0x40 | (len / 4) as u8 & 0xf);
    }

    /// Whether the version is 4 and the header has no options.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.version_ihl() == 0x45
    }

    /// Whether options follow the fixed part.
    #[inline(always)]
    pub fn has_options(&self) -> bool {
        self.header_len() > Self::LEN
    }

    /// Differentiated services code point, 0 to 63.
    #[inline]
    pub fn dscp(&self) -> u8 {
        self.tos() >> 2
    }

    /// Sets the code point to the low 6 bits of `dscp`.
    #[inline]
    pub fn set_dscp(&mut self, dscp: u8) {
        self.set_tos(dscp << 2 | self.ecn());
    }

    /// ECN: 0 not capable, 1 and 2 capable, 3 congestion experienced.
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.tos() & 3
    }

    /// Sets ECN to the low 2 bits of `ecn`.
    #[inline]
    pub fn set_ecn(&mut self, ecn: u8) {
        self.set_tos(self.tos() & !3 | ecn & 3);
    }

    /// The three flags, as bits 2 (reserved), 1 (DF) and 0 (MF).
    #[inline]
    pub fn flags(&self) -> u8 {
        (self.fragment_word() >> 13) as u8
    }

    /// Whether routers must not fragment the packet.
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.fragment_word() & Self::DONT_FRAGMENT != 0
    }

    /// Sets whether routers must not fragment the packet.
    #[inline]
    pub fn set_dont_fragment(&mut self, set: bool) {
        let others = self.fragment_word() & !Self::DONT_FRAGMENT;
        self.set_fragment_word(others | if set { Self::DONT_FRAGMENT } else { 0 });
    }

    /// Whether more fragments follow this one.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.fragment_word() & Self::MORE_FRAGMENTS != 0
    }

    /// Sets whether more fragments follow this one.
    #[inline]
    pub fn set_more_fragments(&mut self, set: bool) {
        let others = self.fragment_word() & !Self::MORE_FRAGMENTS;
        self.set_fragment_word(others | if set { Self::MORE_FRAGMENTS } else { 0 });
    }

    /// Fragment offset in bytes.
    #[inline]
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.fragment_word() & Self::OFFSET_MASK) * 8
    }

    /// Sets the fragment offset in bytes (a multiple of 8 below 65536).
    #[inline]
    pub fn set_fragment_offset(&mut self, bytes: usize) {
        let flags = self.fragment_word() & !Self::OFFSET_MASK;
        self.set_fragment_word(flags | (bytes / 8) as u16 & Self::OFFSET_MASK);
    }

    /// Whether this is a fragment.
    #[inline(always)]
    pub fn is_fragment(&self) -> bool {
        self.fragment_word() & (Self::MORE_FRAGMENTS | Self::OFFSET_MASK) != 0
    }

    /// Whether this is a whole packet or a first fragment, which has the transport header.
    #[inline(always)]
    pub fn is_first_fragment(&self) -> bool {
        self.fragment_word() & Self::OFFSET_MASK == 0
    }

    /// Source address as a number.
    #[inline(always)]
    pub fn src_u32(&self) -> u32 {
        self.src().to_bits()
    }

    /// Destination address as a number.
    #[inline(always)]
    pub fn dst_u32(&self) -> u32 {
        self.dst().to_bits()
    }

    /// Splits the bytes behind the fixed header into options and payload; `None`
    /// if the header length is invalid or the options are truncated.
    #[inline]
    pub fn split_options<'a>(&self, rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        rest.split_at_checked(self.header_len().checked_sub(Self::LEN)?)
    }

    /// Whether the checksum over this header and its `options` is correct.
    #[inline(always)]
    pub fn checksum_ok(&self, options: &[u8]) -> bool {
        if options.is_empty() { checksum::header_ok(&self.0) } else { self.sum(options) == 0 }
    }

    /// Computes the checksum over this header and its `options` in full.
    #[inline(always)]
    pub fn update_checksum(&mut self, options: &[u8]) {
        self.set_checksum(0);
        self.set_checksum(self.sum(options));
    }

    #[inline(always)]
    fn sum(&self, options: &[u8]) -> u16 {
        if options.is_empty() {
            return checksum::of_header(&self.0);
        }
        Sum::new().slice(&self.0).slice(options).checksum()
    }

    /// Updates the checksum incrementally by `delta`.
    #[inline(always)]
    pub fn adjust_checksum(&mut self, delta: Delta) {
        self.set_checksum(delta.apply(self.checksum()));
    }

    /// Decrements the TTL, updates the checksum, and returns the new TTL. Returns
    /// `None` and changes nothing if the TTL is 0 or 1.
    #[inline(always)]
    pub fn decrement_ttl(&mut self) -> Option<u8> {
        // TTL, protocol and checksum are one 32-bit word: read as little-endian,
        // the TTL is the lowest byte and the checksum the upper half.
        let word = self.0[Self::TTL..].first_chunk_mut::<4>()?;
        let old = u32::from_le_bytes(*word);
        let ttl = old as u8;
        if ttl < 2 {
            return None;
        }
        // RFC 1141: decrementing the TTL increments the checksum; a carry, or a
        // result of 0xffff (RFC 1624), increments it once more.
        let carry = u32::from(old >= 0xfffe_0000) << 16;
        *word = old.wrapping_add(0x1_0000 - 1).wrapping_add(carry).to_le_bytes();
        Some(ttl - 1)
    }

    /// Sets the TTL and updates the checksum.
    #[inline]
    pub fn rewrite_ttl(&mut self, ttl: u8) {
        let low = self.protocol();
        let delta =
            Delta::new().u16(u16::from_be_bytes([self.ttl(), low]), u16::from_be_bytes([ttl, low]));
        self.set_ttl(ttl);
        self.adjust_checksum(delta);
    }

    /// Sets the code point to the low 6 bits of `dscp` and updates the checksum.
    #[inline]
    pub fn rewrite_dscp(&mut self, dscp: u8) {
        self.rewrite_tos(dscp << 2 | self.ecn());
    }

    /// Sets ECN to the low 2 bits of `ecn` and updates the checksum.
    #[inline]
    pub fn rewrite_ecn(&mut self, ecn: u8) {
        let mut changed = *self;
        changed.set_ecn(ecn);
        self.rewrite_tos(changed.tos());
    }

    /// Sets the source address and updates the checksum; returns the change, which
    /// applies to the transport checksum too.
    #[inline]
    pub fn rewrite_src(&mut self, src: Ipv4Addr) -> Delta {
        let delta = Delta::new().addr(self.src(), src);
        self.set_src(src);
        self.adjust_checksum(delta);
        delta
    }

    /// Sets the destination address and updates the checksum; returns the change,
    /// which applies to the transport checksum too.
    #[inline]
    pub fn rewrite_dst(&mut self, dst: Ipv4Addr) -> Delta {
        let delta = Delta::new().addr(self.dst(), dst);
        self.set_dst(dst);
        self.adjust_checksum(delta);
        delta
    }

    /// The sum of the pseudo header for a transport checksum; `len` counts
    /// transport header and payload.
    #[inline]
    pub fn pseudo(&self, len: usize) -> Sum {
        checksum::pseudo_v4(self.src(), self.dst(), self.protocol(), len)
    }
}

rewrite! {
    Ipv4Header {
        rewrite_total_len: u16 = total_len, set_total_len, u16;
        rewrite_tos: u8 = tos, set_tos, u16;
        rewrite_fragment_word: u16 = fragment_word, set_fragment_word, u16;
    }
}

/// The destination that a transport checksum covers in a packet with these options: the last address of
/// a source route on which there is one left to visit, else `dst` (RFC 9293, 3.1).
pub fn final_destination(dst: Ipv4Addr, list: &[u8]) -> Ipv4Addr {
    let is_route = |kind| matches!(kind, OPTION_LOOSE_ROUTE | OPTION_STRICT_ROUTE);
    let mut routes = options(list).filter(|option| is_route(option.kind));
    let last = routes.next().and_then(|route| {
        let (&pointer, addresses) = route.data.split_first()?;
        // The pointer counts from 1, type, length and itself being the first three bytes.
        let is_left = usize::from(pointer) <= addresses.len();
        addresses.last_chunk::<4>().filter(|_| is_left).copied()
    });
    last.map_or(dst, Ipv4Addr::from)
}

/// The header length in bytes that the first byte of a header claims; `None` if there is no byte.
#[inline]
pub fn claimed_header_len(bytes: &[u8]) -> Option<usize> {
    bytes.first().map(|first| usize::from(first & 0xf) * 4)
}

/// One of the two addresses of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpSide {
    /// The source.
    Src,
    /// The destination.
    Dst,
}

/// Sets an address of a header at the start of `bytes`, whatever its version, and changes the checksums
/// of IP, TCP and UDP by as much; whether the header claims 20 bytes or more. Fields beyond the end of
/// `bytes` are left out.
pub fn rewrite_address(bytes: &mut [u8], side: IpSide, address: Ipv4Addr) -> bool {
    let mut header = [0; Ipv4Header::LEN];
    let there = bytes.len().min(header.len());
    header[..there].copy_from_slice(&bytes[..there]);
    let mut header = Ipv4Header(header);
    let length = header.header_len();
    if length < Ipv4Header::LEN {
        return false;
    }
    let delta = match side {
        IpSide::Src => header.rewrite_src(address),
        IpSide::Dst => header.rewrite_dst(address),
    };
    bytes[..there].copy_from_slice(&header.0[..there]);
    let segment = bytes.get_mut(length..).filter(|_| header.is_first_fragment());
    match (segment, header.protocol()) {
        (Some(segment), ip_proto::TCP) => {
            let tcp = Tcp::from_prefix_mut(segment);
            tcp.into_iter().for_each(|(tcp, _)| tcp.adjust_checksum(delta));
        }
        (Some(segment), ip_proto::UDP) => {
            let udp = Udp::from_prefix_mut(segment);
            udp.into_iter().for_each(|(udp, _)| udp.adjust_checksum(delta));
        }
        _ => {}
    }
    true
}

/// Iterates over the options of an IPv4 header.
#[inline]
pub fn options(list: &[u8]) -> RawOptions<'_> {
    RawOptions::new(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(id: u16) -> Ipv4Header {
        let mut ip = Ipv4Header::new(17, [10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 20);
        ip.set_id(id);
        ip.update_checksum(&[]);
        ip
    }

    #[test]
    fn a_source_route_has_its_destination_at_its_end() {
        let dst = Ipv4Addr::new(1, 0, 0, 1);
        let end = Ipv4Addr::new(3, 0, 0, 3);
        for (list, expected) in [
            (&[][..], dst),
            (&[1, 131, 11, 4, 2, 0, 0, 2, 3, 0, 0, 3], end),
            (&[137, 11, 8, 2, 0, 0, 2, 3, 0, 0, 3, 0], end),
            (&[137, 11, 12, 2, 0, 0, 2, 3, 0, 0, 3, 0], dst),
            (&[131, 3, 4, 0], dst),
            (&[7, 11, 4, 2, 0, 0, 2, 3, 0, 0, 3, 0], dst),
            (&[131, 12, 4, 2], dst),
        ] {
            assert_eq!(final_destination(dst, list), expected, "{list:?}");
        }
    }

    #[test]
    fn an_address_is_set_in_any_header_of_20_bytes() {
        let address = Ipv4Addr::new(9, 8, 7, 6);
        let mut other = *b"\x65\0\0\x14\0\0\0\0\x40\x06\x12\x34\x01\0\0\x01\x02\0\0\x02";
        assert!(rewrite_address(&mut other, IpSide::Dst, address));
        let delta = Delta::new().addr(Ipv4Addr::new(2, 0, 0, 2), address);
        assert_eq!(other[10..12], delta.apply(0x1234).to_be_bytes());
        assert_eq!((&other[12..16], &other[16..]), (&[1, 0, 0, 1][..], &address.octets()[..]));
        // A wrong checksum stays wrong by as much; back again it is what it was.
        assert!(rewrite_address(&mut other, IpSide::Dst, [2, 0, 0, 2].into()));
        assert_eq!(other[10..12], [0x12, 0x34]);
        let mut short = *b"\x45\0\0\x14\0\0\0\0\x40\x06\x12\x34\x01\0";
        assert!(rewrite_address(&mut short, IpSide::Src, address));
        assert_eq!(short[12..], [9, 8]);
        let mut small = *b"\x44\0\0\x14";
        assert!(!rewrite_address(&mut small, IpSide::Src, address));
        assert!(!rewrite_address(&mut [], IpSide::Src, address));
    }

    #[test]
    fn matches_a_known_header() {
        let bytes = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8,
            0, 0xc7,
        ];
        let ip = Ipv4Header(bytes);
        assert!(ip.checksum_ok(&[]));
        assert_eq!((ip.version(), ip.header_len(), ip.total_len()), (4, 20, 115));
        assert_eq!((ip.ttl(), ip.protocol(), ip.flags()), (64, 17, 2));
        assert_eq!(ip.src(), Ipv4Addr::new(192, 168, 0, 1));
        assert_eq!(ip.dst_u32(), 0xc0a8_00c7);
        assert!(ip.dont_fragment() && !ip.is_fragment());
    }

    #[test]
    fn decrementing_the_ttl_equals_a_full_checksum() {
        for id in 0..=u16::MAX {
            let mut ip = header(id);
            assert_eq!(ip.decrement_ttl(), Some(63));
            let mut fresh = ip;
            fresh.update_checksum(&[]);
            assert_eq!(ip, fresh, "id {id}");
        }
    }

    #[test]
    fn a_ttl_of_one_is_not_decremented() {
        for ttl in 0..=255 {
            let mut ip = header(7);
            ip.rewrite_ttl(ttl);
            assert!(ip.checksum_ok(&[]));
            let before = ip;
            match ip.decrement_ttl() {
                None => assert!(ttl < 2 && ip == before),
                Some(left) => assert!(left == ttl - 1 && left == ip.ttl() && ip.checksum_ok(&[])),
            }
        }
    }

    #[test]
    fn bit_field_setters_keep_other_bits() {
        let mut ip = header(0);
        ip.set_dscp(46);
        ip.set_ecn(3);
        assert_eq!((ip.tos(), ip.dscp(), ip.ecn()), (0xbb, 46, 3));
        ip.set_more_fragments(true);
        ip.set_fragment_offset(1480);
        assert_eq!(ip.fragment_word(), 0x2000 | 185);
        ip.set_dont_fragment(true);
        ip.set_more_fragments(false);
        assert_eq!((ip.fragment_offset(), ip.flags()), (1480, 2));
        assert!(ip.is_fragment() && !ip.is_first_fragment());
        ip.set_header_len(24);
        assert_eq!((ip.version(), ip.header_len()), (4, 24));
        assert_eq!(ip.split_options(&[1, 2, 3, 4, 5]), Some((&[1, 2, 3, 4][..], &[5][..])));
        assert_eq!(ip.split_options(&[1]), None);
        ip.set_header_len(16);
        assert_eq!(ip.split_options(&[1]), None);
    }

    #[test]
    fn the_checksum_covers_options() {
        let mut ip = header(0);
        ip.set_header_len(24);
        ip.update_checksum(&[148, 4, 0, 0]);
        assert!(ip.checksum_ok(&[148, 4, 0, 0]));
        assert!(!ip.checksum_ok(&[148, 4, 0, 1]));
        assert_eq!(options(&[148, 4, 0, 0]).next().map(|o| o.kind), Some(OPTION_ROUTER_ALERT));
    }

    proptest! {
        #[test]
        fn filled_headers_are_right(mut bytes: [u8; 20], src: u32, dst: u32, ttl: u8, len: u16, id: u16) {
            let ends = (src.into(), dst.into());
            Ipv4Header::from_array_mut(&mut bytes).fill(ends, (ttl, 17), (len, id));
            let mut expected = Ipv4Header::new(17, ends.0, ends.1, len);
            expected.set_ttl(ttl);
            expected.set_id(id);
            expected.update_checksum(&[]);
            prop_assert_eq!(Ipv4Header(bytes), expected);
            prop_assert!(expected.checksum_ok(&[]));
        }

        #[test]
        fn rewriting_equals_a_full_checksum(mut bytes: [u8; 20], src: u32, dst: u32, tos: u8, dscp: u8) {
            bytes[0] = 0x45;
            let mut ip = Ipv4Header(bytes);
            ip.update_checksum(&[]);
            ip.rewrite_src(src.into());
            ip.rewrite_dst(dst.into());
            ip.rewrite_tos(tos);
            ip.rewrite_dscp(dscp);
            let mut fresh = ip;
            fresh.update_checksum(&[]);
            prop_assert_eq!(ip, fresh);
        }
    }
}
