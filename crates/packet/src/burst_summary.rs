//! Summaries of bursts: facts about all of their packets.

use crate::packet::{FIX_IP_SRC_FLAG, IPV4, IPV4_FLAGS, Packet, TYPE_MASK, is_group};
use crate::raw::RawPacket;
use wide::{i16x8, u64x2};

/// Facts about all packets of a burst, by their descriptors: a question about each packet can then be asked
/// once for all. They stay true of a part of the packets, and while packets do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstSummary {
    /// Bits that are set in all packets.
    all: Bits,
    /// Bits that are set in any packet.
    any: Bits,
    /// The greatest lower half of a length, as a signed number.
    max_len: i16,
}

/// Words of a descriptor, as in [`RawPacket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bits {
    offsets: u64,
    span: u64,
    marks: u64,
}

impl Bits {
    fn len(self) -> usize {
        let [len @ .., _, _, _, _] = self.span.to_ne_bytes();
        u32::from_ne_bytes(len) as usize
    }

    fn paint(self) -> u8 {
        self.marks.to_ne_bytes()[0]
    }

    fn flags(self) -> u8 {
        self.marks.to_ne_bytes()[1]
    }

    fn packet_type(self) -> u8 {
        self.marks.to_ne_bytes()[3] & TYPE_MASK
    }
}

impl BurstSummary {
    /// That of these packets.
    #[inline]
    pub fn of<'p>(packets: impl IntoIterator<Item = &'p Packet>) -> BurstSummary {
        let (mut all, mut any) = ([u64x2::splat(u64::MAX); 2], [u64x2::splat(0); 2]);
        let mut max = i16x8::splat(0);
        for packet in packets {
            let RawPacket { frame, offsets, span, marks } = RawPacket::of(packet);
            let frame = frame.as_ptr().addr() as u64;
            let (low, high) = (u64x2::new([frame, offsets]), u64x2::new([span, marks]));
            all = [all[0] & low, all[1] & high];
            any = [any[0] | low, any[1] | high];
            max = max.max(bytemuck::cast(high));
        }
        let bits = |[low, high]: [u64x2; 2]| {
            let ([_, offsets], [span, marks]) = (low.to_array(), high.to_array());
            Bits { offsets, span, marks }
        };
        // The lower half of the length is the first or, on big-endian machines, the second of these.
        let max_len = max.to_array()[usize::from(cfg!(target_endian = "big"))];
        BurstSummary { all: bits(all), any: bits(any), max_len }
    }

    /// That of packets that have no descriptors, as if they had some: with this paint, to this host, from `start` of
    /// their buffers to `end` at most, and with the network header at `network`, if they have one. `is_plain` says whether
    /// all have been checked to be IPv4 and to have no options.
    pub(crate) fn of_bytes(
        (start, end): (usize, usize),
        network: Option<usize>,
        is_plain: bool,
        paint: u8,
    ) -> BurstSummary {
        let offset = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
        let length = u32::try_from(end - start).unwrap_or(u32::MAX);
        let flags = if is_plain { IPV4_FLAGS } else { 0 };
        let bits = Bits {
            offsets: bytemuck::cast([offset(start), 0, offset(network.unwrap_or(0)), 0]),
            span: bytemuck::cast([length, 0]),
            marks: bytemuck::cast([paint, flags, 0, 0, 0, 0, 0, 0]),
        };
        let max_len = i16::try_from(end - start).unwrap_or(i16::MAX);
        BurstSummary { all: bits, any: bits, max_len }
    }

    /// A length in bytes that no packet exceeds; the longest packet's if that is less than 32 KiB.
    #[inline]
    fn max_len(&self) -> usize {
        let any = self.any.len();
        // All lengths together have at least the bits of the greatest.
        if any <= i16::MAX as usize { self.max_len as usize } else { any }
    }

    /// Whether all packets have been checked to be IPv4.
    #[inline]
    pub fn is_ipv4(&self) -> bool {
        self.all.flags() & IPV4 != 0
    }

    /// Whether all packets have been checked to be IPv4, and to have no options.
    #[inline]
    pub fn is_ipv4_without_options(&self) -> bool {
        self.all.flags() & IPV4_FLAGS == IPV4_FLAGS
    }

    /// Whether a packet has the `FIX_IP_SRC` annotation.
    #[inline]
    pub fn has_fix_ip_src(&self) -> bool {
        self.any.flags() & FIX_IP_SRC_FLAG != 0
    }

    /// The paint annotation, if it is the same in all packets.
    #[inline]
    pub fn paint(&self) -> Option<u8> {
        let paint = self.any.paint();
        (paint == self.all.paint()).then_some(paint)
    }

    /// Whether packets may have come as link-level broadcasts or multicasts: if packets are of several types, too.
    #[inline]
    pub fn may_be_to_group(&self) -> bool {
        let kind = self.any.packet_type();
        kind != self.all.packet_type() || is_group(kind)
    }

    /// A number of bytes from the network header on that no packet exceeds, if all packets have that header at the same place.
    #[inline]
    pub fn max_network_len(&self) -> Option<usize> {
        if self.all.offsets != self.any.offsets {
            return None;
        }
        let bytes = self.all.offsets.to_ne_bytes();
        let offset = |n: usize| usize::from(u16::from_ne_bytes([bytes[2 * n], bytes[2 * n + 1]]));
        let (data, network) = (offset(0), offset(2));
        (network != 0).then(|| (data + self.max_len()).saturating_sub(network))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketType;

    /// An IPv4 packet of 40 bytes whose header has `header_len` bytes.
    fn ipv4(header_len: u8) -> Packet {
        let mut bytes = [0; 40];
        bytes[0] = 0x40 | (header_len / 4);
        let mut packet = Packet::from_bytes(&bytes);
        assert!(packet.mark_ipv4(0, header_len.into(), 40));
        packet
    }

    #[test]
    fn it_says_what_is_true_of_all_packets_and_no_more() {
        let mut packets = [ipv4(20), ipv4(20), ipv4(20)];
        let summary = BurstSummary::of(&packets);
        assert!(summary.is_ipv4() && summary.is_ipv4_without_options());
        assert!(!summary.has_fix_ip_src());
        assert_eq!(summary.paint(), Some(0));
        assert!(!summary.may_be_to_group());
        assert_eq!(summary.max_network_len(), Some(40));

        packets[1].set_paint(3);
        packets[2].set_fix_ip_src(true);
        packets[0].set_packet_type(PacketType::Multicast);
        let summary = BurstSummary::of(&packets);
        assert_eq!(summary.paint(), None);
        assert!(summary.may_be_to_group());
        assert!(summary.has_fix_ip_src() && summary.is_ipv4_without_options());
        assert_eq!(BurstSummary::of(&packets[1..2]).paint(), Some(3));
        for (kind, is_group) in [
            (PacketType::Host, false),
            (PacketType::Broadcast, true),
            (PacketType::Multicast, true),
            (PacketType::OtherHost, false),
        ] {
            packets[0].set_packet_type(kind);
            assert_eq!(BurstSummary::of(&packets[..1]).may_be_to_group(), is_group);
        }
    }

    #[test]
    fn a_header_with_options_or_without_a_check_is_seen() {
        let with_options = BurstSummary::of(&[ipv4(20), ipv4(24)]);
        assert!(with_options.is_ipv4() && !with_options.is_ipv4_without_options());
        // Marked again, it has the flags of the new header.
        let mut packet = ipv4(20);
        assert!(packet.mark_ipv4(0, 24, 40));
        assert!(!BurstSummary::of(std::slice::from_ref(&packet)).is_ipv4_without_options());
        // A caller with all bytes may change the header.
        let mut packet = ipv4(20);
        packet.bytes_mut()[0] = 0x46;
        assert!(!BurstSummary::of(&[packet, ipv4(20)]).is_ipv4());
        let mut packet = ipv4(20);
        packet.bytes_mut()[0] = 0x46;
        assert!(packet.ipv4().is_some());
        let summary = BurstSummary::of(std::slice::from_ref(&packet));
        assert!(summary.is_ipv4() && !summary.is_ipv4_without_options());
    }

    #[test]
    fn lengths_count_from_the_network_header() {
        let mut packet = ipv4(20);
        packet.push_mac_header(14);
        let summary = BurstSummary::of(std::slice::from_ref(&packet));
        assert_eq!(summary.max_network_len(), Some(40));
        // At several places, or nowhere.
        assert_eq!(BurstSummary::of(&[packet, ipv4(20)]).max_network_len(), None);
        let mut long = Packet::from_bytes(&[0; 60]);
        assert_eq!(BurstSummary::of(std::slice::from_ref(&long)).max_network_len(), None);
        long.set_network_header(20, 20);
        assert_eq!(BurstSummary::of(std::slice::from_ref(&long)).max_network_len(), Some(40));
        assert_eq!(BurstSummary::of(&[long, ipv4(20)]).max_network_len(), None);
        // Beyond 32 KiB it may be more than the longest.
        for len in [32767, 32768, 65535, 65536, 100_000] {
            let mut packet = Packet::from_bytes(&vec![0; len]);
            packet.set_network_header(0, 20);
            let most = BurstSummary::of(std::slice::from_ref(&packet)).max_network_len();
            assert_eq!(most, Some(len));
        }
    }
}
