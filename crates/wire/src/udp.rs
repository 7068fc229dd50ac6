//! UDP datagrams (RFC 768).

use crate::checksum::{Delta, Sum};
use crate::ip_proto;

header! {
    /// The header of a UDP datagram.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |          Source Port          |       Destination Port        |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |            Length             |           Checksum            |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Udp [8] {
        /// Source port.
        src_port, set_src_port: u16 = SRC_PORT @ 0;
        /// Destination port.
        dst_port, set_dst_port: u16 = DST_PORT @ 2;
        /// Length of header and payload in bytes.
        length, set_length: u16 = LENGTH @ 4;
        /// Checksum over pseudo header, header and payload; 0 means none.
        checksum, set_checksum: u16 = CHECKSUM @ 6;
    }
}

impl Udp {
    /// Whether the checksum is correct, or absent. `pseudo` is the sum of the
    /// pseudo header, `payload` the bytes behind the UDP header, up to `length`.
    #[inline]
    pub fn checksum_ok(&self, pseudo: Sum, payload: &[u8]) -> bool {
        self.checksum() == 0 || pseudo.header(&self.0).slice(payload).checksum() == 0
    }

    /// Computes the checksum in full.
    #[inline]
    pub fn update_checksum(&mut self, pseudo: Sum, payload: &[u8]) {
        self.set_checksum(0);
        let sum = pseudo.header(&self.0).slice(payload).checksum();
        self.set_checksum(nonzero(sum));
    }

    /// Writes all fields before a payload, with the checksum of the values. `addresses` is the sum of
    /// the addresses in the IP header; without it there is no checksum.
    #[inline(always)]
    pub fn fill(&mut self, (src, dst): (u16, u16), addresses: Option<Sum>, payload: &[u8]) {
        let length = (Udp::LEN + payload.len()) as u16;
        let sum = addresses.map_or(0, |addresses| {
            let pseudo = addresses.u16(ip_proto::UDP.into()).u16(length);
            nonzero(pseudo.u16(src).u16(dst).u16(length).slice(payload).checksum())
        });
        self.set_src_port(src);
        self.set_dst_port(dst);
        self.set_length(length);
        self.set_checksum(sum);
    }

    /// The checksum of `datagram`, which begins with this header, whatever the checksum in it.
    #[inline]
    pub fn checksum_of(&self, pseudo: Sum, datagram: &[u8]) -> u16 {
        nonzero(pseudo.slice(datagram).without(self.checksum()).checksum())
    }

    /// Updates the checksum incrementally by `delta`, if there is one.
    #[inline]
    pub fn adjust_checksum(&mut self, delta: Delta) {
        if self.checksum() != 0 {
            self.set_checksum(nonzero(delta.apply(self.checksum())));
        }
    }

    /// Exchanges the ports; the checksum stays correct.
    #[inline]
    pub fn mirror(&mut self) {
        let (src, dst) = (self.src_port(), self.dst_port());
        self.set_src_port(dst);
        self.set_dst_port(src);
    }
}

rewrite! {
    Udp {
        rewrite_src_port: u16 = src_port, set_src_port, u16;
        rewrite_dst_port: u16 = dst_port, set_dst_port, u16;
    }
}

/// The source and destination port of a TCP or UDP header; `None` if it is truncated.
#[inline]
pub fn ports(header: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = *header.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// Converts a computed checksum into its transmitted form: 0 would mean none, so 0xffff
/// replaces it.
#[inline]
const fn nonzero(sum: u16) -> u16 {
    if sum == 0 { 0xffff } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::pseudo_v4;
    use std::net::Ipv4Addr;

    #[test]
    fn every_port_rewrite_equals_a_full_checksum() {
        let pseudo = pseudo_v4([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17, 11);
        let mut udp = Udp([0, 53, 0, 99, 0, 11, 0, 0]);
        udp.update_checksum(pseudo, b"abc");
        for port in 0..=u16::MAX {
            udp.rewrite_dst_port(port);
            assert!(udp.checksum_ok(pseudo, b"abc") && udp.checksum() != 0);
            let mut fresh = udp;
            fresh.update_checksum(pseudo, b"abc");
            assert_eq!(udp, fresh, "port {port}");
            fresh.set_checksum(port);
            let datagram = [&fresh.0[..], b"abc"].concat();
            assert_eq!(fresh.checksum_of(pseudo, &datagram), udp.checksum());
        }
        udp.rewrite_src_port(1);
        assert!(udp.checksum_ok(pseudo, b"abc"));
        assert!(!udp.checksum_ok(pseudo, b"abd"));
    }

    #[test]
    fn filled_headers_are_right() {
        let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        for payload in [&b""[..], b"a", b"abc", &[0xff; 99]] {
            let mut udp = Udp([0xee; 8]);
            let pseudo = pseudo_v4(src, dst, ip_proto::UDP, Udp::LEN + payload.len());
            let addresses = Sum::new().u32(src.to_bits()).u32(dst.to_bits());
            udp.fill((53, 99), Some(addresses), payload);
            let mut fresh = udp;
            fresh.update_checksum(pseudo, payload);
            assert_eq!((udp, udp.src_port(), udp.dst_port()), (fresh, 53, 99));
            udp.fill((53, 99), None, payload);
            assert_eq!((usize::from(udp.length()), udp.checksum()), (8 + payload.len(), 0));
        }
    }

    #[test]
    fn an_absent_checksum_stays_absent() {
        let mut udp = Udp([0, 53, 0, 99, 0, 8, 0, 0]);
        udp.rewrite_src_port(7);
        assert_eq!(udp.checksum(), 0);
        assert!(udp.checksum_ok(Sum::new(), b""));
    }
}
