//! IPv6 headers (RFC 8200).

use crate::checksum::{self, Sum};
use std::net::Ipv6Addr;

header! {
    /// An IPv6 header.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |Version| Traffic Class |           Flow Label                  |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |         Payload Length        |  Next Header  |   Hop Limit   |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                                                               |
    /// +                         Source Address (16 bytes)             +
    /// |                                                               |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                                                               |
    /// +                      Destination Address (16 bytes)           +
    /// |                                                               |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Ipv6Header [40] {
        /// Version, traffic class and flow label, as one word.
        version_class_flow, set_version_class_flow: u32 = VERSION_CLASS_FLOW @ 0;
        /// Length of the bytes behind this header.
        payload_len, set_payload_len: u16 = PAYLOAD_LEN @ 4;
        /// Protocol of the next header (see [`ip_proto`](crate::ip_proto)).
        next_header, set_next_header: u8 = NEXT_HEADER @ 6;
        /// Hop limit: maximum number of remaining hops.
        hop_limit, set_hop_limit: u8 = HOP_LIMIT @ 7;
        /// Source address.
        src, set_src: Ipv6Addr = SRC @ 8;
        /// Destination address.
        dst, set_dst: Ipv6Addr = DST @ 24;
    }
}

impl Ipv6Header {
    /// Makes a header with hop limit 64, and traffic class and flow label zero.
    pub fn new(next_header: u8, src: Ipv6Addr, dst: Ipv6Addr, payload_len: u16) -> Self {
        let mut header = Ipv6Header([0; 40]);
        header.set_version_class_flow(6 << 28);
        header.set_payload_len(payload_len);
        header.set_next_header(next_header);
        header.set_hop_limit(64);
        header.set_src(src);
        header.set_dst(dst);
        header
    }

    /// IP version; 6 in a valid header.
    #[inline(always)]
    pub fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// Traffic class: DSCP and ECN, as one byte.
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        (self.version_class_flow() >> 20) as u8
    }

    /// Sets the traffic class.
    #[inline]
    pub fn set_traffic_class(&mut self, class: u8) {
        let others = self.version_class_flow() & !(0xff << 20);
        self.set_version_class_flow(others | u32::from(class) << 20);
    }

    /// Differentiated services code point, 0 to 63.
    #[inline]
    pub fn dscp(&self) -> u8 {
        self.traffic_class() >> 2
    }

    /// Sets the code point to the low 6 bits of `dscp`.
    #[inline]
    pub fn set_dscp(&mut self, dscp: u8) {
        self.set_traffic_class(dscp << 2 | self.traffic_class() & 3);
    }

    /// Flow label, 20 bits.
    #[inline]
    pub fn flow_label(&self) -> u32 {
        self.version_class_flow() & 0xf_ffff
    }

    /// Sets the flow label to the low 20 bits of `label`.
    #[inline]
    pub fn set_flow_label(&mut self, label: u32) {
        let others = self.version_class_flow() & !0xf_ffff;
        self.set_version_class_flow(others | label & 0xf_ffff);
    }

    /// Length of the payload where `available` bytes follow this header: all of them if the length
    /// field is 0, as in a jumbogram (RFC 2675).
    #[inline]
    pub fn payload_len_in(&self, available: usize) -> usize {
        match usize::from(self.payload_len()) {
            0 => available,
            length => length.min(available),
        }
    }

    /// Decrements the hop limit and returns it. Returns `None` and changes nothing if it is 0 or 1.
    #[inline(always)]
    pub fn decrement_hop_limit(&mut self) -> Option<u8> {
        let left = self.hop_limit().checked_sub(1).filter(|&left| left > 0)?;
        self.set_hop_limit(left);
        Some(left)
    }

    /// The sum of the pseudo header for a transport checksum. `next_header` is the
    /// transport protocol, which differs from this header's field if there are
    /// extension headers; `len` counts transport header and payload.
    #[inline]
    pub fn pseudo(&self, next_header: u8, len: usize) -> Sum {
        checksum::pseudo_v6(self.src(), self.dst(), next_header, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_offsets_of_the_diagram() {
        let src: Ipv6Addr = "2001:db8::1".parse().expect("address");
        let dst: Ipv6Addr = "fe80::2".parse().expect("address");
        let mut ip = Ipv6Header::new(58, src, dst, 0x1234);
        ip.set_traffic_class(0xab);
        ip.set_flow_label(0xff12_3456);
        assert_eq!(ip.0[..8], [0x6a, 0xb2, 0x34, 0x56, 0x12, 0x34, 58, 64]);
        assert_eq!((ip.version(), ip.traffic_class(), ip.flow_label()), (6, 0xab, 0x2_3456));
        assert_eq!(ip.0[8..24], src.octets());
        assert_eq!(ip.0[24..], dst.octets());
        assert_eq!((ip.src(), ip.dst()), (src, dst));
        assert_eq!(ip.dscp(), 0xab >> 2);
        ip.set_dscp(0x15);
        assert_eq!((ip.traffic_class(), ip.flow_label()), (0x57, 0x2_3456));
    }

    #[test]
    fn a_hop_limit_of_one_is_not_decremented() {
        let mut ip = Ipv6Header::new(58, Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, 0);
        ip.set_hop_limit(2);
        assert_eq!(ip.decrement_hop_limit(), Some(1));
        assert_eq!(ip.decrement_hop_limit(), None);
        assert_eq!(ip.hop_limit(), 1);
    }
}
