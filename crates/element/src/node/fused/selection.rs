//! Selection of the packets of a burst that have a certain fate, and visits to packets in order.

use castanet_packet::Packet;
use wide::u8x16;

/// The packets of a burst that have a certain fate.
#[derive(Default)]
pub(super) struct Selection {
    /// A bit for each packet, 64 to a word.
    words: Vec<u64>,
}

impl Selection {
    /// Selects the packets with this fate; returns their number.
    #[inline]
    pub(super) fn select(&mut self, fates: &[u8], fate: u8) -> u16 {
        self.words.clear();
        let mut count = 0;
        for fates in fates.chunks(64) {
            let mut word = 0;
            let (sixteens, rest) = fates.as_chunks();
            for (&sixteen, n) in sixteens.iter().zip(0..) {
                word |= equal(sixteen, fate) << (16 * n);
            }
            if !rest.is_empty() {
                let mut sixteen = [!fate; 16];
                sixteen[..rest.len()].copy_from_slice(rest);
                word |= equal(sixteen, fate) << (16 * sixteens.len());
            }
            self.words.push(word);
            count += word.count_ones() as u16;
        }
        count
    }

    /// The selected packets, in order.
    #[inline]
    pub(super) fn packets(&self) -> SelectedPackets<'_> {
        SelectedPackets { words: &self.words, start: 0, left: 0 }
    }
}

/// A bit for each of sixteen fates: whether it is `fate`.
#[inline(always)]
fn equal(sixteen: [u8; 16], fate: u8) -> u64 {
    u8x16::new(sixteen).cmp_eq(u8x16::splat(fate)).move_mask() as u64
}

/// Packets of a burst, in order.
pub(super) trait PacketOrder {
    /// Visits these of the packets that come next, with their indices, until `visit` returns `false`; returns
    /// whether all were visited.
    fn visit(
        &mut self,
        packets: &mut [Packet],
        visit: impl FnMut(usize, &mut Packet) -> bool,
    ) -> bool;
}

/// All packets from an index on.
#[derive(Default)]
pub(super) struct AllPackets {
    next: usize,
}

impl PacketOrder for AllPackets {
    #[inline(always)]
    fn visit(
        &mut self,
        packets: &mut [Packet],
        mut visit: impl FnMut(usize, &mut Packet) -> bool,
    ) -> bool {
        let start = self.next;
        for (packet, index) in packets.iter_mut().skip(start).zip(start..) {
            if !visit(index, packet) {
                self.next = index + 1;
                return false;
            }
        }
        true
    }
}

/// Selected packets.
pub(super) struct SelectedPackets<'a> {
    /// A bit for each packet that is not visited yet, but for those of `left`.
    words: &'a [u64],
    /// The index of the packet of the first of these bits.
    start: usize,
    /// The bits that are left of the word before.
    left: u64,
}

impl PacketOrder for SelectedPackets<'_> {
    #[inline(always)]
    fn visit(
        &mut self,
        packets: &mut [Packet],
        mut visit: impl FnMut(usize, &mut Packet) -> bool,
    ) -> bool {
        // Variables, so that the fields need not be written for each word.
        let SelectedPackets { mut words, mut start, mut left } = *self;
        loop {
            while left == 0 {
                let Some((&word, others)) = words.split_first() else {
                    *self = SelectedPackets { words, start, left };
                    return true;
                };
                (left, words, start) = (word, others, start + 64);
            }
            let first = start - 64;
            let some = packets.get_mut(first..).unwrap_or_default();
            while left != 0 {
                let index = left.trailing_zeros() as usize;
                left &= left - 1;
                if some.get_mut(index).is_some_and(|packet| !visit(first + index, packet)) {
                    *self = SelectedPackets { words, start, left };
                    return false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_with_the_fate_are_selected_in_order() {
        let mut selection = Selection::default();
        let mut next = 1u64;
        for len in (0..300).step_by(7) {
            let fates: Vec<u8> = (0..len)
                .map(|_| {
                    next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    [0, 1, 2, 0x80, 0xff][(next >> 33) as usize % 5]
                })
                .collect();
            for fate in [0, 1, 2, 3, 0x7f, 0x80, 0xfe, 0xff] {
                let expected: Vec<usize> = (0..len).filter(|&n| fates[n] == fate).collect();
                assert_eq!(usize::from(selection.select(&fates, fate)), expected.len());
                let mut packets: Vec<_> = (0..len).map(|_| Packet::from_bytes(&[])).collect();
                // In pieces: each visit ends behind the third packet.
                let (mut order, mut seen) = (selection.packets(), Vec::new());
                let mut visit = |index: usize, packet: &mut Packet| {
                    packet.set_paint(1);
                    seen.push(index);
                    !seen.len().is_multiple_of(3)
                };
                while !order.visit(&mut packets, &mut visit) {}
                assert_eq!(seen, expected);
                let painted = (0..len).filter(|&n| packets[n].paint() == 1);
                assert_eq!(painted.collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn all_packets_are_visited_in_order_and_from_where_a_visit_ended() {
        let mut packets: Vec<_> = (0..10).map(|_| Packet::from_bytes(&[])).collect();
        let (mut order, mut seen) = (AllPackets::default(), Vec::new());
        for more in [true, false] {
            let visited = order.visit(&mut packets, |index, _| {
                seen.push(index);
                index != 4
            });
            assert_eq!(visited, !more);
        }
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
    }
}
