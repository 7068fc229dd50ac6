//! Locates headers: the payload of an Ethernet frame behind its VLAN tags.

use crate::{Ethernet, Vlan, ether_type};

/// The EtherType and the offset of a frame's payload, behind at most `max_tags` VLAN tags; the
/// EtherType of a tag if more of them follow. `None` if the Ethernet header or a tag is truncated.
#[inline]
pub fn frame_payload(frame: &[u8], max_tags: usize) -> Option<(u16, usize)> {
    let (ether, mut rest) = Ethernet::from_prefix(frame)?;
    let (mut kind, mut tags) = (ether.ether_type(), 0);
    while matches!(kind, ether_type::VLAN | ether_type::QINQ) && tags < max_tags {
        let (tag, behind) = Vlan::from_prefix(rest)?;
        (kind, rest, tags) = (tag.ether_type(), behind, tags + 1);
    }
    Some((kind, Ethernet::LEN + tags * Vlan::LEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_skipped_up_to_a_limit() {
        let tags = [0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0];
        let frame = [&[0; 12][..], &tags, &[0x45]].concat();
        assert_eq!(frame_payload(&frame, usize::MAX), Some((ether_type::IPV4, 22)));
        assert_eq!(frame_payload(&frame, 2), Some((ether_type::IPV4, 22)));
        assert_eq!(frame_payload(&frame, 1), Some((ether_type::VLAN, 18)));
        assert_eq!(frame_payload(&frame, 0), Some((ether_type::QINQ, 14)));
        for len in 0..22 {
            let limit = [(18, 1), (14, 0)].into_iter().find(|&(least, _)| len >= least);
            assert_eq!(frame_payload(&frame[..len], 8), None, "{len} bytes");
            if let Some((offset, most)) = limit {
                assert_eq!(frame_payload(&frame[..len], most).map(|it| it.1), Some(offset));
            }
        }
    }
}
