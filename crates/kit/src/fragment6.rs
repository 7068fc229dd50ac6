//! Fragmentation of IPv6 packets (RFC 8200, section 4.5).

use castanet_wire::extension::{Extension, UpperLayer};
use castanet_wire::{Fragment6, Ipv6Header, ip_proto};

/// The layout of one fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentRange {
    /// The offset in the fragmentable part.
    pub start: usize,
    /// The length in bytes.
    pub length: usize,
    /// Whether further fragments follow.
    pub more: bool,
}

/// A packet that is to be fragmented.
#[derive(Clone, Copy, Debug)]
pub struct Fragmentation<'a> {
    /// The headers that each fragment repeats.
    head: &'a [u8],
    /// The fragmentable part.
    body: &'a [u8],
    /// The offset of the last extension header of the head, if there is one.
    last: Option<usize>,
    room: usize,
}

/// Prepares the fragmentation of a packet, from its IPv6 header on and without padding, so that no
/// fragment is longer than `mtu`.
///
/// `None` if that is impossible: the packet is a fragment, or the MTU has no room for its headers
/// and eight bytes.
pub fn divide<'a>(packet: &'a [u8], upper: &UpperLayer, mtu: usize) -> Option<Fragmentation<'a>> {
    let (head, body) = packet.split_at_checked(Ipv6Header::LEN + upper.per_fragment_len)?;
    let room = mtu.checked_sub(head.len() + Fragment6::LEN)? & !7;
    let whole = upper.fragment.is_none() && body.len() <= usize::from(u16::MAX);
    (whole && room >= 8).then_some(Fragmentation {
        head,
        body,
        last: upper.last_per_fragment,
        room,
    })
}

impl Fragmentation<'_> {
    /// The fragments, in order.
    pub fn fragments(&self) -> impl Iterator<Item = FragmentRange> + use<> {
        let (all, room) = (self.body.len(), self.room);
        (0..all.max(1)).step_by(room).map(move |start| {
            let length = room.min(all - start);
            FragmentRange { start, length, more: start + length < all }
        })
    }

    /// The length of a whole fragment.
    pub fn total(&self, range: FragmentRange) -> usize {
        self.head.len() + Fragment6::LEN + range.length
    }

    /// Writes a fragment into `out`, which must have its length; `id` is the packet's
    /// identification.
    pub fn write(&self, range: FragmentRange, id: u32, out: &mut [u8]) {
        let (head, rest) = out.split_at_mut(self.head.len());
        head.copy_from_slice(self.head);
        let next = self.insert_fragment_header(head);
        let header = Fragment6::new(next, range.start as u16, range.more, id);
        let (fragment, body) = rest.split_at_mut(Fragment6::LEN);
        fragment.copy_from_slice(header.bytes());
        body.copy_from_slice(&self.body[range.start..range.start + range.length]);
        let extensions = self.head.len() - Ipv6Header::LEN;
        if let Some((ip, _)) = Ipv6Header::from_prefix_mut(out) {
            ip.set_payload_len((extensions + Fragment6::LEN + range.length) as u16);
        }
    }

    /// Sets the next header of the head to the fragment header, and returns the previous value.
    fn insert_fragment_header(&self, head: &mut [u8]) -> u8 {
        let Some((ip, extensions)) = Ipv6Header::from_prefix_mut(head) else { return 0 };
        let last = self.last.and_then(|at| Extension::from_prefix_mut(extensions.get_mut(at..)?));
        match last {
            Some((last, _)) => {
                let next = last.next_header();
                last.set_next_header(ip_proto::FRAGMENT);
                next
            }
            None => {
                let next = ip.next_header();
                ip.set_next_header(ip_proto::FRAGMENT);
                next
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_wire::extension;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    proptest! {
        #[test]
        fn fragments_make_up_the_packet(
            options in 0usize..3, payload in 0usize..4000, mtu in 0usize..2000, id: u32,
        ) {
            let mut body = Vec::new();
            let mut next = ip_proto::UDP;
            if options > 0 {
                body.extend([ip_proto::UDP, options as u8 - 1]);
                body.resize(options * 8, 0);
                next = ip_proto::HOP_BY_HOP;
            }
            body.extend((0..payload).map(|i| i as u8));
            let ip = Ipv6Header::new(next, Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, body.len() as u16);
            let packet = [&ip.0[..], &body].concat();
            let upper = extension::upper_layer(next, &body);
            let Some(fragmentation) = divide(&packet, &upper, mtu) else {
                prop_assert!(mtu < 40 + options * 8 + 8 + 8);
                return Ok(());
            };
            let mut whole: Vec<u8> = Vec::new();
            for range in fragmentation.fragments() {
                let mut out = vec![0; fragmentation.total(range)];
                fragmentation.write(range, id, &mut out);
                prop_assert!(out.len() <= mtu);
                let (ip, rest) = Ipv6Header::from_prefix(&out).unwrap();
                prop_assert_eq!(usize::from(ip.payload_len()), rest.len());
                let upper = extension::upper_layer(ip.next_header(), rest);
                let fragment = upper.fragment.unwrap();
                prop_assert_eq!((upper.protocol, fragment.id()), (ip_proto::UDP, id));
                prop_assert_eq!(usize::from(fragment.offset()), whole.len());
                whole.extend(&rest[upper.offset..]);
                prop_assert_eq!(fragment.more_fragments(), whole.len() < payload);
            }
            prop_assert_eq!(&whole, &body[options * 8..]);
        }
    }

    #[test]
    fn fragments_are_not_divided_again() {
        let fragment = Fragment6::new(17, 0, true, 1);
        let ip = Ipv6Header::new(44, Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, 100);
        let packet = [&ip.0[..], &fragment.0, &[0; 92]].concat();
        assert!(divide(&packet, &extension::upper_layer(44, &packet[40..]), 80).is_none());
    }
}
