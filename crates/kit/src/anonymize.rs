//! Prefix-preserving anonymisation of addresses.
//!
//! The method of tcpdpriv's `-A50`: each bit is flipped or not at random, depending on all bits
//! before it, so that two addresses share as many leading bits afterwards as before.

use crate::rng::Rng;
use castanet_wire::{Icmp, Ipv4Header, Tcp, Udp, ip_proto};
use std::net::Ipv4Addr;

/// A mapping of all addresses to others.
#[derive(Clone, Debug)]
pub struct Anonymizer {
    /// The key of the mapping.
    secret: u64,
    /// How many leading ones are kept.
    class: u32,
    /// First bytes that are kept.
    preserve: Vec<u8>,
}

impl Anonymizer {
    /// The mapping for `seed`, which keeps `class` leading ones and these first octets.
    pub fn new(seed: u64, class: u32, preserve: Vec<u8>) -> Anonymizer {
        Anonymizer { secret: Rng::new(seed).bits(), class: class.min(32), preserve }
    }

    /// The image of an address. The unspecified and the broadcast address are mapped to themselves.
    pub fn map(&self, address: Ipv4Addr) -> Ipv4Addr {
        let special = |it: Ipv4Addr| it.is_unspecified() || it.is_broadcast();
        let mut it = address;
        if special(it) {
            return it;
        }
        loop {
            let flips = (0..u32::BITS)
                .fold(0u32, |flips, bit| flips << 1 | u32::from(self.flips_bit(it.to_bits(), bit)));
            it = Ipv4Addr::from_bits(it.to_bits() ^ flips);
            // An address that is mapped to a special one gets the image that the special one
            // leaves.
            if !special(it) {
                return it;
            }
        }
    }

    /// Whether a bit is flipped: a pseudorandom function of the bits before it.
    fn flips_bit(&self, address: u32, bit: u32) -> bool {
        let before = u64::from(address) >> (u32::BITS - bit);
        let ones = (1u64 << bit) - 1;
        // Class bits: as long as all bits before are ones, this bit is kept.
        if bit < self.class && before == ones {
            return false;
        }
        let is_preserved =
            |&first: &u8| bit < u8::BITS && before == u64::from(first) >> (u8::BITS - bit);
        if self.preserve.iter().any(is_preserved) {
            return false;
        }
        let node = before << 6 | u64::from(bit);
        Rng::new(self.secret ^ node.wrapping_mul(0xd6e8_feb8_6659_fd93)).bits() >> 63 == 1
    }
}

/// Replaces the addresses of a datagram and, if it is an ICMP error, of the quoted datagram.
/// Correct checksums stay correct.
pub fn anonymize_datagram(map: &Anonymizer, bytes: &mut [u8]) {
    let Some((ip, rest)) = Ipv4Header::from_prefix_mut(bytes) else { return };
    let deltas = [ip.rewrite_src(map.map(ip.src())), ip.rewrite_dst(map.map(ip.dst()))];
    let options = ip.header_len().saturating_sub(Ipv4Header::LEN);
    let Some(body) = rest.get_mut(options..).filter(|_| ip.is_first_fragment()) else { return };
    match ip.protocol() {
        ip_proto::TCP => {
            let tcp = Tcp::from_prefix_mut(body).map(|(tcp, _)| tcp);
            tcp.into_iter().for_each(|tcp| deltas.iter().for_each(|&d| tcp.adjust_checksum(d)));
        }
        ip_proto::UDP => {
            let udp = Udp::from_prefix_mut(body).map(|(udp, _)| udp);
            udp.into_iter().for_each(|udp| deltas.iter().for_each(|&d| udp.adjust_checksum(d)));
        }
        ip_proto::ICMP => {
            let icmp = Icmp::from_prefix_mut(body).filter(|(icmp, _)| icmp.is_error());
            // The inner header's checksum compensates the change of its addresses, so the sum
            // over the ICMP message is unchanged.
            if let Some((ip, _)) = icmp.and_then(|(_, inner)| Ipv4Header::from_prefix_mut(inner)) {
                ip.rewrite_src(map.map(ip.src()));
                ip.rewrite_dst(map.map(ip.dst()));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn shared(a: Ipv4Addr, b: Ipv4Addr) -> u32 {
        (a.to_bits() ^ b.to_bits()).leading_zeros()
    }

    proptest! {
        #[test]
        fn prefixes_are_shared_as_before(a in any::<u32>(), b in any::<u32>(), seed in any::<u64>()) {
            let map = Anonymizer::new(seed, 0, vec![]);
            let (a, b) = (Ipv4Addr::from_bits(a), Ipv4Addr::from_bits(b));
            let special = |x: Ipv4Addr| x.is_unspecified() || x.is_broadcast();
            prop_assume!(!special(a) && !special(b));
            prop_assert_eq!(shared(map.map(a), map.map(b)), shared(a, b));
        }

        #[test]
        fn class_bits_and_preserved_octets_are_kept(a in any::<u32>(), seed in any::<u64>(), class in 0u32..6) {
            let map = Anonymizer::new(seed, class, vec![18]);
            let (old, new) = (Ipv4Addr::from_bits(a), map.map(Ipv4Addr::from_bits(a)));
            prop_assert_eq!(old.octets()[0] == 18, new.octets()[0] == 18);
            prop_assert_eq!(old.octets()[0] == 19, new.octets()[0] == 19);
            let ones = |x: Ipv4Addr| x.to_bits().leading_ones().min(class);
            prop_assert_eq!(ones(old), ones(new));
        }
    }

    /// A datagram with correct checksums.
    fn build(protocol: u8, body: &[u8]) -> Vec<u8> {
        let head = [0x45, 0, 0, 20 + body.len() as u8, 0, 1, 0, 0, 64, protocol, 0, 0];
        let mut bytes = [&head[..], &[10, 0, 0, 1, 10, 0, 0, 2], body].concat();
        let (ip, rest) = Ipv4Header::from_prefix_mut(&mut bytes).unwrap();
        ip.update_checksum(&[]);
        let pseudo = ip.pseudo(rest.len());
        match protocol {
            ip_proto::UDP => {
                let (udp, rest) = Udp::from_prefix_mut(rest).unwrap();
                udp.update_checksum(pseudo, rest);
            }
            ip_proto::TCP => {
                let (tcp, rest) = Tcp::from_prefix_mut(rest).unwrap();
                tcp.update_checksum(pseudo, rest);
            }
            _ => {
                let (icmp, rest) = Icmp::from_prefix_mut(rest).unwrap();
                icmp.update_checksum(rest);
            }
        }
        bytes
    }

    #[test]
    fn checksums_stay_correct_also_in_errors() {
        let map = Anonymizer::new(5, 0, vec![]);
        let udp = build(ip_proto::UDP, &[0, 5, 0, 6, 0, 12, 0, 0, 1, 2, 3, 4]);
        let error = build(ip_proto::ICMP, &[&[3, 1, 0, 0, 0, 0, 0, 0][..], &udp].concat());
        let tcp =
            build(ip_proto::TCP, &[0, 5, 0, 6, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 2, 9, 9, 0, 0, 0, 0]);
        for mut bytes in [udp, error, tcp] {
            let before = bytes.clone();
            anonymize_datagram(&map, &mut bytes);
            let (ip, rest) = Ipv4Header::from_prefix(&bytes).unwrap();
            assert!(ip.checksum_ok(&[]) && bytes != before);
            assert_eq!(ip.src(), map.map([10, 0, 0, 1].into()));
            match ip.protocol() {
                ip_proto::UDP => {
                    let (udp, payload) = Udp::from_prefix(rest).unwrap();
                    assert!(udp.checksum_ok(ip.pseudo(rest.len()), payload));
                }
                ip_proto::TCP => {
                    let (tcp, payload) = Tcp::from_prefix(rest).unwrap();
                    assert!(tcp.checksum_ok(ip.pseudo(rest.len()), payload));
                }
                _ => {
                    assert_eq!(castanet_wire::checksum::of(rest), 0);
                    let (inner, _) = Ipv4Header::from_prefix(&rest[8..]).unwrap();
                    assert_eq!((inner.src(), inner.checksum_ok(&[])), (ip.src(), true));
                }
            }
        }
    }

    #[test]
    fn a_mapping_is_one_to_one_and_random() {
        let map = Anonymizer::new(7, 0, vec![]);
        let all = (0..1u32 << 16).map(|low| map.map(Ipv4Addr::from_bits(0x0a01_0000 | low)));
        assert_eq!(all.collect::<HashSet<_>>().len(), 1 << 16);
        for special in [Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST] {
            assert_eq!(map.map(special), special);
        }
        let other = Anonymizer::new(8, 0, vec![]);
        let differ = (0..1000u32).filter(|n| {
            let it = Ipv4Addr::from_bits(n * 4_000_037);
            map.map(it) != other.map(it)
        });
        assert!(differ.count() > 900);
    }
}
