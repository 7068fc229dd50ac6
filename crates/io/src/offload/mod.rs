//! Software offloads: checksum completion, segmentation of super-frames, VLAN tag insertion.
//!
//! Inside one machine no sender computes checksums or cuts TCP streams into packets: the kernel
//! passes partial checksums and super-frames of up to 64 KiB from one virtual interface to the
//! next. Elements must see the packets that the wire would have carried; otherwise a rewritten
//! packet goes out broken.

mod checksums;
mod headers;
mod partial;
mod segment;

pub(crate) use checksums::complete_checksums;
pub(crate) use headers::{find_headers, ip_offset};
pub(crate) use partial::finish_if_partial;
pub(crate) use segment::Segments;

use castanet_wire::checksum::Sum;
use castanet_wire::{Ethernet, Vlan};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The first header of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkType {
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
    /// The segmentation type (`VIRTIO_NET_HDR_GSO_*`); zero if the frame is no super-frame.
    pub(crate) gso_type: u8,
    /// A hint at the total length of the headers.
    pub(crate) hdr_len: u16,
    /// Bytes of payload in each segment.
    pub(crate) gso_size: u16,
    /// Offset of the first byte that the checksum covers.
    pub(crate) csum_start: u16,
    /// Offset of the checksum field, counted from `csum_start`.
    pub(crate) csum_offset: u16,
}

impl VnetHeader {
    /// The checksum field holds the sum of the pseudo header only.
    pub(crate) const NEEDS_CSUM: u8 = 1;
    /// A TCP super-frame over IPv4.
    pub(crate) const GSO_TCPV4: u8 = 1;
    /// A TCP super-frame over IPv6.
    pub(crate) const GSO_TCPV6: u8 = 4;
    /// A UDP super-frame: several datagrams in one.
    pub(crate) const GSO_UDP_L4: u8 = 5;
    /// A flag beside a TCP type: the super-frame has CWR set.
    const GSO_ECN: u8 = 0x80;

    /// Whether the receiver has to finish the checksum.
    pub(crate) fn needs_checksum(&self) -> bool {
        self.flags & Self::NEEDS_CSUM != 0
    }

    /// The super-frame's type without flags; zero if the frame is no super-frame.
    pub(crate) fn gso_kind(&self) -> u8 {
        self.gso_type & !Self::GSO_ECN
    }
}

/// A VLAN tag that the kernel moved out of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct VlanTag {
    /// The tag's EtherType: 802.1Q (`VLAN`) or 802.1ad (`QINQ`).
    pub(crate) tpid: u16,
    /// Priority, drop eligibility and VLAN identifier.
    pub(crate) tci: u16,
}

impl VlanTag {
    /// Offset of the tag in an Ethernet frame.
    pub(crate) const OFFSET: usize = Ethernet::ETHER_TYPE;

    /// The four bytes to insert at [`VlanTag::OFFSET`].
    pub(crate) fn bytes(self) -> [u8; Vlan::LEN] {
        // On the wire a tag is its EtherType and its control information; the EtherType of the
        // payload, already in the frame, follows.
        let [t0, t1] = self.tpid.to_be_bytes();
        let [c0, c1] = self.tci.to_be_bytes();
        [t0, t1, c0, c1]
    }
}

/// Finishes the checksum of `frame` as the virtio header describes it: over all bytes from
/// `csum_start` on, with the sum of the pseudo header in the checksum field. Returns `false` if the
/// field lies outside of the frame.
pub(crate) fn finish_checksum(frame: &mut [u8], header: &VnetHeader) -> bool {
    let start = usize::from(header.csum_start);
    let Some(counted) = frame.get(start..) else { return false };
    let sum = match Sum::new().slice(counted).checksum() {
        // In UDP, zero means that there is no checksum (RFC 768); in TCP, both values are the same
        // number.
        0 => u16::MAX,
        sum => sum,
    };
    let at = start + usize::from(header.csum_offset);
    let Some(at) = frame.get_mut(at..at + size_of::<u16>()) else { return false };
    at.copy_from_slice(&sum.to_be_bytes());
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
        assert_eq!(VlanTag::OFFSET, 12);
    }
}
