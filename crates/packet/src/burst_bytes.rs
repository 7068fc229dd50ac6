//! The bytes of packets that have no descriptors.

use crate::{BurstSummary, MAX_BURST};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

/// Offset of the destination address in an IPv4 header.
const DESTINATION: usize = 16;

/// The bytes of a burst's packets that have no descriptors. A device lends them before it makes packets of what it
/// has received, or where it makes none. All packets start at the same offset of their buffers, and have their network
/// headers at the same one. Packets that take another way leave the burst; they stay as they were received. Facts
/// about all packets stand for the annotations that packets with descriptors would have.
pub struct BurstBytes<'a> {
    /// Those of the burst's packets; behind them, those of packets that have left it.
    buffers: &'a mut [NonNull<u8>],
    count: usize,
    /// Offset of the first byte of each packet, now and at first.
    start: usize,
    first_start: usize,
    /// Offset of the end of each packet of the burst, the least of them, and their sum.
    ends: &'a mut [u32],
    least_end: usize,
    sum_of_ends: u64,
    /// Offset of the network headers.
    network: Option<usize>,
    /// Whether they were checked to be those of IPv4 without options.
    is_plain: bool,
    /// Offset of the addresses that are the destination annotations.
    destinations: Option<usize>,
    paint: u8,
    is_cut: bool,
    bytes: PhantomData<&'a mut [u8]>,
}

impl<'a> BurstBytes<'a> {
    /// Packets from `start` of their buffers to their `ends`, where `shortest` is the length of the shortest, and
    /// `total` the number of their bytes.
    ///
    /// # Safety
    /// Each buffer has these bytes, nobody else reads or writes them for `'a`, and none is twice in `buffers`. There
    /// are as many ends, at most [`MAX_BURST`], and the two numbers are right.
    #[inline]
    pub unsafe fn new(
        buffers: &'a mut [NonNull<u8>],
        start: usize,
        ends: &'a mut [u32],
        (shortest, total): (usize, u64),
    ) -> BurstBytes<'a> {
        BurstBytes {
            start,
            first_start: start,
            least_end: start + shortest,
            sum_of_ends: total + (buffers.len() * start) as u64,
            count: buffers.len(),
            buffers,
            ends,
            network: None,
            is_plain: false,
            destinations: None,
            paint: 0,
            is_cut: false,
            bytes: PhantomData,
        }
    }

    /// For tests: lends the bytes of these packets, at most [`MAX_BURST`], for one call. Then those that are left in the burst
    /// are the first, cut as they were there, and the others are as they were.
    pub fn lend<A>(packets: &mut [Vec<u8>], call: impl FnOnce(&mut BurstBytes) -> A) -> A {
        assert!(packets.len() <= MAX_BURST);
        let lengths = packets.iter().map(Vec::len);
        let (shortest, total) =
            (lengths.clone().min().unwrap_or(0), lengths.clone().sum::<usize>());
        let mut ends: Vec<u32> = lengths.map(|length| length as u32).collect();
        let first = |packet: &mut Vec<u8>| NonNull::from(packet.as_mut_slice()).cast();
        let mut buffers: Vec<NonNull<u8>> = packets.iter_mut().map(first).collect();
        // SAFETY: each packet has these bytes, and is borrowed as long as they are lent; none overlaps another.
        let mut bytes =
            unsafe { BurstBytes::new(&mut buffers, 0, &mut ends, (shortest, total as u64)) };
        let answer = call(&mut bytes);
        let count = bytes.packets();
        packets.sort_by_key(|packet| {
            buffers.iter().position(|buffer| buffer.as_ptr().cast_const() == packet.as_ptr())
        });
        let kept = packets.iter_mut().zip(ends).take(count);
        kept.for_each(|(packet, end)| packet.truncate(end as usize));
        answer
    }

    /// Number of packets in the burst.
    #[inline]
    pub fn packets(&self) -> usize {
        self.count
    }

    /// Length of the shortest packet.
    #[inline]
    pub fn length(&self) -> usize {
        self.least_end - self.start
    }

    /// Number of bytes of all packets.
    #[inline]
    pub fn total(&self) -> u64 {
        self.sum_of_ends - (self.count * self.start) as u64
    }

    /// Whether packets start where they were received.
    #[inline]
    pub fn is_at_start(&self) -> bool {
        self.start == self.first_start
    }

    /// Whether packets have been cut.
    #[inline]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The first bytes of each packet, as many as the shortest has.
    #[inline(always)]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        // SAFETY: `new`'s caller answers for the bytes, which end at `least_end` or later.
        self.buffers[..self.count].iter().map(|buffer| unsafe {
            slice::from_raw_parts(buffer.add(self.start).as_ptr(), self.length())
        })
    }

    /// The same, to write to.
    #[inline(always)]
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [u8]> {
        // SAFETY: as above; no buffer is there twice.
        self.buffers[..self.count].iter().map(|buffer| unsafe {
            slice::from_raw_parts_mut(buffer.add(self.start).as_ptr(), self.length())
        })
    }

    /// All bytes of each packet.
    #[inline(always)]
    pub fn whole(&self) -> impl Iterator<Item = &[u8]> {
        self.from(self.start)
    }

    /// The bytes of each packet from its network header on; `None` if it has none.
    #[inline(always)]
    pub fn network(&self) -> Option<impl Iterator<Item = &[u8]>> {
        Some(self.from(self.network?))
    }

    /// The bytes from the link header on, and those from the network header on, of each packet; `None` if it has none.
    #[inline(always)]
    pub fn link_and_network(&self) -> Option<impl Iterator<Item = (&[u8], &[u8])>> {
        let length = self.network?.checked_sub(self.first_start)?;
        let packets = self.from(self.first_start);
        Some(packets.map(move |bytes| (bytes, bytes.get(length..).unwrap_or_default())))
    }

    /// The bytes of each packet from an offset of its buffer on; none if it ends before.
    #[inline(always)]
    fn from(&self, offset: usize) -> impl Iterator<Item = &[u8]> {
        self.buffers[..self.count].iter().zip(&*self.ends).map(move |(buffer, &end)| {
            let length = (end as usize).saturating_sub(offset);
            // SAFETY: `new`'s caller answers for the bytes up to the first end, and for those behind the start.
            unsafe { slice::from_raw_parts(buffer.add(offset).as_ptr(), length) }
        })
    }

    /// Strips so many bytes of each packet, at most [`length`](BurstBytes::length).
    #[inline]
    pub fn strip(&mut self, count: usize) {
        self.start += count.min(self.length());
    }

    /// Restores so many bytes that were stripped; `false`, and nothing is done, if they are more.
    #[inline]
    pub fn unstrip(&mut self, count: usize) -> bool {
        let start = self.start.checked_sub(count).filter(|&start| start >= self.first_start);
        self.start = start.unwrap_or(self.start);
        start.is_some()
    }

    /// The offset at which packets start now, for [`seek`](BurstBytes::seek).
    #[inline]
    pub fn position(&self) -> usize {
        self.start
    }

    /// Has packets start at an offset that [`position`](BurstBytes::position) has answered.
    #[inline]
    pub fn seek(&mut self, position: usize) {
        self.start = position.clamp(self.first_start, self.least_end);
    }

    /// Marks the network headers, which begin with the byte `offset` of each packet, at most
    /// [`length`](BurstBytes::length).
    #[inline]
    pub fn mark_network(&mut self, offset: usize) {
        self.network = Some(self.start + offset.min(self.length()));
        self.is_plain = false;
    }

    /// Marks the network headers as those of IPv4 without options, which have been checked; their destination addresses
    /// are the annotations.
    #[inline]
    pub fn mark_plain_ipv4(&mut self, offset: usize) {
        self.mark_network(offset);
        self.is_plain = true;
        self.destinations = self.network.map(|network| network + DESTINATION);
    }

    /// Whether [all headers](BurstBytes::headers_mut) are those of IPv4 without options.
    #[inline]
    pub fn is_plain_ipv4(&self) -> bool {
        self.is_plain
    }

    /// The first bytes from the network header on of each packet, as many as the shortest has; none if they have none.
    #[inline(always)]
    pub fn headers(&self) -> impl Iterator<Item = &[u8]> {
        let (start, length) = self.header_range();
        // SAFETY: as in `iter`; the range ends at `least_end`.
        self.buffers[..self.count]
            .iter()
            .map(move |buffer| unsafe { slice::from_raw_parts(buffer.add(start).as_ptr(), length) })
    }

    /// The same, to write to.
    #[inline(always)]
    pub fn headers_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let (start, length) = self.header_range();
        // SAFETY: as in `headers`; no buffer is there twice.
        self.buffers[..self.count].iter().map(move |buffer| unsafe {
            slice::from_raw_parts_mut(buffer.add(start).as_ptr(), length)
        })
    }

    /// The offset of the network headers, and the number of bytes that all packets have from there on.
    fn header_range(&self) -> (usize, usize) {
        let start = self.network.unwrap_or(self.least_end).min(self.least_end);
        (start, self.least_end - start)
    }

    /// The destination addresses that packets have as their annotations; `None` if this is not known.
    #[inline(always)]
    pub fn destinations(&self) -> Option<impl Iterator<Item = u32>> {
        let offset =
            self.destinations.filter(|&offset| offset + size_of::<u32>() <= self.least_end)?;
        // SAFETY: as in `iter`; the four bytes end before `least_end`.
        Some(self.buffers[..self.count].iter().map(move |buffer| unsafe {
            u32::from_be(buffer.add(offset).cast::<u32>().read_unaligned())
        }))
    }

    /// Sets the destination annotations to the four bytes at `offset` of each packet; `false`, and nothing is done, if
    /// one is shorter.
    #[inline]
    pub fn mark_destinations(&mut self, offset: usize) -> bool {
        let is_there = offset + size_of::<u32>() <= self.length();
        if is_there {
            self.destinations = Some(self.start + offset);
        }
        is_there
    }

    /// The destination annotations are no longer those of the packets.
    #[inline]
    pub fn forget_destinations(&mut self) {
        self.destinations = None;
    }

    /// Sets the paint annotation of all packets.
    #[inline]
    pub fn set_paint(&mut self, paint: u8) {
        self.paint = paint;
    }

    /// A summary of the burst.
    pub fn summary(&self) -> BurstSummary {
        let end = self.ends[..self.count].iter().fold(0, |most, &end| most.max(end)) as usize;
        let range = (self.start, end.max(self.start));
        BurstSummary::of_bytes(range, self.network, self.is_plain, self.paint)
    }

    /// Cuts each packet to the length that `decide` answers; one that is as short stays as it is, and one for which there is
    /// none. `decide` has its first bytes, as many as the shortest packet has, and its length.
    #[inline(always)]
    pub fn cut(&mut self, mut decide: impl FnMut(&[u8], usize) -> Option<usize>) {
        let (start, first) = (self.start, self.length());
        let mut odd = 0;
        for (buffer, end) in self.buffers[..self.count].iter().zip(&mut *self.ends) {
            let length = *end as usize - start;
            // SAFETY: as in `iter`.
            let bytes = unsafe { slice::from_raw_parts(buffer.add(start).as_ptr(), first) };
            let cut = decide(bytes, length).map_or(length, |cut| cut.min(length));
            let its_end = (start + cut) as u32;
            odd |= its_end ^ *end;
            *end = its_end;
        }
        if odd != 0 {
            self.is_cut = true;
            self.measure();
        }
    }

    /// All bytes of one packet; none if there are not so many packets.
    #[inline]
    pub fn packet(&self, number: usize) -> &[u8] {
        let (Some(buffer), Some(&end)) =
            (self.buffers[..self.count].get(number), self.ends.get(number))
        else {
            return &[];
        };
        // SAFETY: `new`'s caller answers for the bytes from the start to the end.
        unsafe { slice::from_raw_parts(buffer.add(self.start).as_ptr(), end as usize - self.start) }
    }

    /// Cuts one packet to a length; one that is as short stays as it is.
    #[inline]
    pub fn cut_packet(&mut self, number: usize, length: usize) {
        let least = self.start + length.min(self.packet(number).len());
        if let Some(end) =
            self.ends[..self.count].get_mut(number).filter(|end| **end as usize > least)
        {
            self.sum_of_ends -= u64::from(*end) - least as u64;
            *end = least as u32;
            self.least_end = self.least_end.min(least);
            self.is_cut = true;
        }
    }

    /// Finds the least of the ends, and their sum.
    fn measure(&mut self) {
        let ends = &self.ends[..self.count];
        let least = ends.iter().fold(u32::MAX, |least, &end| least.min(end));
        self.sum_of_ends = ends.iter().map(|&end| u64::from(end)).sum();
        self.least_end = if self.count > 0 { least as usize } else { self.start };
    }

    /// Has packets leave the burst of which `stays` is false, by their numbers.
    pub fn retain(&mut self, stays: impl FnMut(usize) -> bool) {
        let mut leaving = [NonNull::dangling(); MAX_BURST];
        let mut answers = [false; MAX_BURST];
        let answers = &mut answers[..self.count];
        // All answers come first: nothing is moved if one panics.
        answers.iter_mut().zip((0..).map(stays)).for_each(|(stays, answer)| *stays = answer);
        let (mut kept, mut left) = (0, 0);
        for (number, &stays) in answers.iter().enumerate() {
            let (buffer, end) = (self.buffers[number], self.ends[number]);
            if stays {
                (self.buffers[kept], self.ends[kept]) = (buffer, end);
                kept += 1;
            } else {
                leaving[left] = buffer;
                left += 1;
            }
        }
        self.buffers[kept..self.count].copy_from_slice(&leaving[..left]);
        self.count = kept;
        self.measure();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets() -> Vec<Vec<u8>> {
        [9, 4, 6].map(|length| (0..length).collect()).into()
    }

    #[test]
    fn all_packets_lend_as_many_bytes_as_the_shortest_has() {
        let mut packets = packets();
        BurstBytes::lend(&mut packets, |bytes| {
            assert_eq!((bytes.packets(), bytes.length(), bytes.total()), (3, 4, 19));
            bytes.iter_mut().for_each(|bytes| bytes[3] = 77);
            assert!(bytes.iter().all(|bytes| bytes == [0, 1, 2, 77]));
        });
        assert_eq!(packets[2], [0, 1, 2, 77, 4, 5]);
        BurstBytes::lend(&mut [], |bytes| {
            bytes.cut(|_, length| Some(length));
            assert_eq!((bytes.iter().len(), bytes.length(), bytes.total()), (0, 0, 0));
        });
    }

    #[test]
    fn bytes_are_stripped_and_restored() {
        BurstBytes::lend(&mut packets(), |bytes| {
            bytes.strip(3);
            assert_eq!((bytes.length(), bytes.total(), bytes.is_at_start()), (1, 10, false));
            assert!(bytes.whole().map(<[u8]>::len).eq([6, 1, 3]));
            assert!(bytes.whole().all(|bytes| bytes[0] == 3));
            assert!(!bytes.unstrip(4) && bytes.length() == 1);
            bytes.strip(9);
            assert_eq!(bytes.length(), 0);
            assert!(bytes.unstrip(4) && bytes.is_at_start() && bytes.total() == 19);
        });
    }

    #[test]
    fn headers_stay_marked_where_packets_are_stripped() {
        BurstBytes::lend(&mut packets(), |bytes| {
            assert!(bytes.network().is_none() && bytes.link_and_network().is_none());
            bytes.strip(1);
            bytes.mark_network(1);
            bytes.strip(2);
            assert!(bytes.network().unwrap().map(|it| (it[0], it.len())).eq([
                (2, 7),
                (2, 2),
                (2, 4)
            ]));
            assert!(
                bytes
                    .link_and_network()
                    .unwrap()
                    .all(|(link, it)| &link[2..] == it && link[0] == 0)
            );
        });
    }

    #[test]
    fn packets_are_cut() {
        let mut packets = packets();
        BurstBytes::lend(&mut packets, |bytes| {
            bytes.strip(2);
            let lengths = &mut Vec::new();
            bytes.cut(|first, length| {
                lengths.push((first[0], length));
                Some(length)
            });
            assert_eq!((bytes.is_cut(), &lengths[..]), (false, &[(2, 7), (2, 2), (2, 4)][..]));
            // One without a length stays.
            bytes.cut(|_, length| (length != 7).then_some(9));
            assert!(!bytes.is_cut() && bytes.total() == 7 + 2 + 4);
            // The shortest cannot grow.
            bytes.cut(|_, _| Some(3));
            assert_eq!((bytes.is_cut(), bytes.length(), bytes.total()), (true, 2, 3 + 2 + 3));
            bytes.cut(|first, _| Some(usize::from(first[1]) - 2));
            assert_eq!((bytes.length(), bytes.total()), (1, 3));
            assert!(bytes.whole().all(|bytes| bytes == [2]));
        });
        assert_eq!(packets, [[0, 1, 2], [0, 1, 2], [0, 1, 2]]);
    }

    #[test]
    fn one_packet_is_cut() {
        let mut packets = packets();
        BurstBytes::lend(&mut packets, |bytes| {
            bytes.strip(1);
            assert_eq!((bytes.packet(2), bytes.packet(3)), (&[1, 2, 3, 4, 5][..], &[][..]));
            [(0, 9), (1, 3), (3, 0)]
                .into_iter()
                .for_each(|(at, length)| bytes.cut_packet(at, length));
            assert!(!bytes.is_cut() && bytes.total() == 8 + 3 + 5);
            bytes.cut_packet(0, 2);
            assert_eq!((bytes.is_cut(), bytes.length(), bytes.total()), (true, 2, 2 + 3 + 5));
        });
        assert_eq!(packets[0], [0, 1, 2]);
    }

    #[test]
    fn packets_leave_a_burst() {
        let mut packets = packets();
        BurstBytes::lend(&mut packets, |bytes| {
            bytes.cut(|_, length| Some(length - 1));
            bytes.retain(|number| number != 1);
            assert_eq!((bytes.packets(), bytes.length(), bytes.total()), (2, 5, 13));
            assert!(bytes.whole().map(<[u8]>::len).eq([8, 5]));
            bytes.iter_mut().for_each(|bytes| bytes[0] = 9);
            bytes.strip(2);
            bytes.retain(|number| number != 0);
            assert_eq!((bytes.packets(), bytes.length(), bytes.total()), (1, 3, 3));
        });
        // The one that is left, the one that left last, and that which left first.
        assert_eq!(packets[0], [9, 1, 2, 3, 4]);
        assert_eq!(packets[1], [9, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(packets[2], [0, 1, 2, 3]);
        BurstBytes::lend(&mut packets, |bytes| {
            bytes.retain(|_| false);
            assert_eq!((bytes.packets(), bytes.length(), bytes.total()), (0, 0, 0));
            assert_eq!(bytes.whole().count() + bytes.iter().len(), 0);
        });
    }

    #[test]
    fn annotations_are_those_of_all_packets() {
        let mut packets: Vec<Vec<u8>> = [30, 40].map(|length| (0..length).collect()).into();
        BurstBytes::lend(&mut packets, |bytes| {
            assert!(bytes.destinations().is_none() && bytes.headers().all(<[u8]>::is_empty));
            let summary = bytes.summary();
            assert!(!summary.is_ipv4() && !summary.may_be_to_group() && !summary.has_fix_ip_src());
            assert_eq!((summary.paint(), summary.max_network_len()), (Some(0), None));
            bytes.strip(2);
            bytes.mark_plain_ipv4(3);
            bytes.set_paint(9);
            let expected = u32::from_be_bytes([21, 22, 23, 24]);
            assert!(bytes.destinations().unwrap().eq([expected, expected]));
            assert!(bytes.headers_mut().all(|header| header[0] == 5 && header.len() == 25));
            let summary = bytes.summary();
            assert!(summary.is_ipv4() && summary.is_ipv4_without_options());
            assert_eq!((summary.paint(), summary.max_network_len()), (Some(9), Some(35)));
            bytes.strip(20);
            let position = bytes.position();
            assert!(bytes.unstrip(22) && bytes.is_at_start());
            bytes.seek(position);
            assert!(bytes.iter().all(|bytes| bytes[0] == 22));
            // Addresses may be others than those of the headers.
            assert!(!bytes.mark_destinations(5) && bytes.mark_destinations(4));
            let expected = u32::from_be_bytes([26, 27, 28, 29]);
            assert!(bytes.destinations().unwrap().eq([expected, expected]));
            // Another mark says nothing about the header, but annotations stay.
            bytes.mark_network(0);
            assert!(!bytes.is_plain_ipv4() && !bytes.summary().is_ipv4());
            assert!(bytes.destinations().is_some());
            bytes.forget_destinations();
            assert!(bytes.destinations().is_none());
        });
        // Addresses that have been cut off are none.
        BurstBytes::lend(&mut packets, |bytes| {
            bytes.mark_plain_ipv4(0);
            bytes.cut(|_, _| Some(19));
            assert!(bytes.destinations().is_none());
        });
    }
}
