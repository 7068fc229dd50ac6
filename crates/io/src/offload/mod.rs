//! What a sender left to the hardware, done in software: checksums, segmentation, VLAN tags.
//!
//! Inside one machine nobody computes checksums or cuts TCP streams into
//! packets: the kernel passes partial checksums and super-frames of up to
//! 64 KiB from one virtual interface to the next. What an element sees must be
//! what the wire would have carried, or a rewritten packet goes out broken.

mod complete;
mod layers;
mod partial;
mod segment;

pub(crate) use complete::complete;
pub(crate) use layers::{Layers, Transport, Version, find};
pub(crate) use partial::finish_if_partial;
pub(crate) use segment::Segments;

use castanet_wire::checksum::Sum;
use castanet_wire::{Ethernet, Vlan};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What stands first in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    /// An Ethernet header.
    Ethernet,
    /// An IP header.
    Ip,
}

/// `struct virtio_net_hdr` as packet sockets and TUN devices use it, in the
/// machine's byte order.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub(crate) struct VnetHeader {
    /// [`NEEDS_CSUM`](Self::NEEDS_CSUM) and others.
    pub(crate) flags: u8,
    /// How to cut the frame, if it is a super-frame.
    pub(crate) gso_type: u8,
    /// A hint how long the headers are.
    pub(crate) hdr_len: u16,
    /// Bytes of payload in each segment.
    pub(crate) gso_size: u16,
    /// Where the checksum begins to count.
    pub(crate) csum_start: u16,
    /// Where it is stored, from there.
    pub(crate) csum_offset: u16,
}

impl VnetHeader {
    /// The checksum holds the sum of the pseudo header only.
    pub(crate) const NEEDS_CSUM: u8 = 1;
    /// A TCP super-frame over IPv4.
    pub(crate) const GSO_TCPV4: u8 = 1;
    /// A TCP super-frame over IPv6.
    pub(crate) const GSO_TCPV6: u8 = 4;
    /// Several UDP datagrams in one.
    pub(crate) const GSO_UDP_L4: u8 = 5;
    /// Beside a TCP type: the super-frame has CWR set.
    const GSO_ECN: u8 = 0x80;

    /// Whether the checksum is still to be finished.
    pub(crate) fn needs_checksum(&self) -> bool {
        self.flags & Self::NEEDS_CSUM != 0
    }

    /// The kind of super-frame, zero if it is none.
    pub(crate) fn gso_kind(&self) -> u8 {
        self.gso_type & !Self::GSO_ECN
    }
}

/// A tag that the kernel took out of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct VlanTag {
    /// `VLAN` or `QINQ`.
    pub(crate) tpid: u16,
    /// Priority and identifier.
    pub(crate) tci: u16,
}

impl VlanTag {
    /// Bytes of an Ethernet frame that come before its tag.
    pub(crate) const AT: usize = Ethernet::ETHER_TYPE;

    /// The four bytes that go in there.
    pub(crate) fn bytes(self) -> [u8; Vlan::LEN] {
        // A tag on the wire is its type and its control information; the
        // tagged type, already in the frame, then follows.
        let [t0, t1] = self.tpid.to_be_bytes();
        let [c0, c1] = self.tci.to_be_bytes();
        [t0, t1, c0, c1]
    }
}

/// Finishes the checksum of `frame` as `header` says: over all from its start,
/// where the pseudo header's sum already stands in its place. `false` if it
/// lies outside of the frame.
pub(crate) fn finish_checksum(frame: &mut [u8], header: &VnetHeader) -> bool {
    let start = usize::from(header.csum_start);
    let Some(counted) = frame.get(start..) else { return false };
    let sum = match Sum::new().slice(counted).checksum() {
        // Zero would say that there is no checksum (RFC 768); to TCP both are
        // the same number.
        0 => u16::MAX,
        sum => sum,
    };
    let place = start + usize::from(header.csum_offset);
    let Some(place) = frame.get_mut(place..place + size_of::<u16>()) else { return false };
    place.copy_from_slice(&sum.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_checksum_is_finished_with_the_odd_byte() {
        let mut frame = vec![9, 9, 0x12, 0x34, 0, 0, 0x56];
        let header =
            VnetHeader { flags: 1, csum_start: 2, csum_offset: 2, ..VnetHeader::default() };
        assert!(finish_checksum(&mut frame, &header));
        // 0x1234 + 0x5600 = 0x6834, complement 0x97cb.
        assert_eq!(frame, [9, 9, 0x12, 0x34, 0x97, 0xcb, 0x56]);
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_all_ones() {
        let mut frame = vec![0xff, 0xff, 0, 0];
        let header =
            VnetHeader { flags: 1, csum_start: 0, csum_offset: 2, ..VnetHeader::default() };
        assert!(finish_checksum(&mut frame, &header));
        assert_eq!(frame, [0xff; 4]);
    }

    #[test]
    fn a_checksum_outside_of_the_frame_is_refused() {
        for (csum_start, csum_offset) in [(5, 0), (0, 3), (4, 0), (u16::MAX, u16::MAX)] {
            let header = VnetHeader { flags: 1, csum_start, csum_offset, ..Default::default() };
            assert!(!finish_checksum(&mut [1, 2, 3, 4], &header), "{csum_start}+{csum_offset}");
        }
    }

    #[test]
    fn a_tag_is_type_then_control_information() {
        assert_eq!(VlanTag { tpid: 0x88a8, tci: 0x6005 }.bytes(), [0x88, 0xa8, 0x60, 0x05]);
        assert_eq!(VlanTag::AT, 12);
    }
}
