//! The bytes of packets that have no descriptors.

mod words;

use crate::{BurstSummary, MAX_BURST};
use std::array;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;
use wide::{CmpGt, i32x4};
use words::Destinations;

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
    destinations: Destinations,
    /// A word for each packet, for the element that decides about it last.
    words: &'a mut [u64],
    paint: u8,
    is_cut: bool,
    bytes: PhantomData<&'a mut [u8]>,
}

impl<'a> BurstBytes<'a> {
    /// Packets from `start` of their buffers to their `ends`, where `shortest` is the length of the shortest, and
    /// `total` the number of their bytes. The words may be any.
    ///
    /// # Safety
    /// Each buffer has these bytes, nobody else reads or writes them for `'a`, and none is twice in `buffers`. There
    /// are as many ends, at most [`MAX_BURST`], and as many words, and the two numbers are right.
    #[inline]
    pub unsafe fn new(
        buffers: &'a mut [NonNull<u8>],
        start: usize,
        (ends, words): (&'a mut [u32], &'a mut [u64]),
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
            destinations: Destinations::Unknown,
            words,
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
        let mut words = vec![0; buffers.len()];
        let notes = (&mut ends[..], &mut words[..]);
        // SAFETY: each packet has these bytes, and is borrowed as long as they are lent; none overlaps another.
        let mut bytes =
            unsafe { BurstBytes::new(&mut buffers, 0, notes, (shortest, total as u64)) };
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

    /// Length of the longest packet.
    #[inline]
    pub fn longest(&self) -> usize {
        let most = self.ends[..self.count].iter().fold(0, |most, &end| most.max(end));
        (most as usize).saturating_sub(self.start)
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
        self.destinations = match self.network {
            Some(network) => Destinations::InPackets(network + DESTINATION),
            None => Destinations::Unknown,
        };
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

    /// Sets the paint annotation of all packets.
    #[inline]
    pub fn set_paint(&mut self, paint: u8) {
        self.paint = paint;
    }

    /// A summary of the burst.
    pub fn summary(&self) -> BurstSummary {
        let range = (self.start, self.start + self.longest());
        BurstSummary::of_bytes(range, self.network, self.is_plain, self.paint)
    }

    /// Cuts packets to the lengths that `decide` answers for four at a time: numbers of bytes from `offset` on. One that is
    /// as short stays as it is. `decide` has the number of the first, the first bytes from there on of each, and their
    /// lengths. Those of the last four that are beyond the burst are its last packet once more. `false`, and nothing is
    /// done, if one has fewer of these bytes.
    #[inline(always)]
    pub fn cut<const N: usize>(
        &mut self,
        offset: usize,
        mut decide: impl FnMut(usize, [&[u8; N]; 4], i32x4) -> i32x4,
    ) -> bool {
        if self.length().checked_sub(N).is_none_or(|last| offset > last) {
            return false;
        }
        let at = self.start + offset;
        let (first, count) = (i32x4::splat(at as i32), self.count);
        let mut odd = i32x4::splat(0);
        // One place where `decide` is called: it is part of this loop then.
        for number in (0..count).step_by(4) {
            let buffers = four(&self.buffers[number..count]);
            let ends = i32x4::new(four(&self.ends[number..count]).map(u32::cast_signed));
            let lengths = ends - first;
            // SAFETY: `new`'s caller answers for the bytes, which end at `least_end` or later.
            let bytes = unsafe { bytes_of_four(buffers, at) };
            let answers = decide(number, bytes, lengths) & i32x4::splat(i32::MAX);
            let cut = first + answers.cmp_gt(lengths).blend(lengths, answers);
            odd |= cut ^ ends;
            let cut = cut.to_array().map(i32::cast_unsigned);
            match self.ends[number..count].first_chunk_mut() {
                Some(ends) => *ends = cut,
                None => {
                    let last = &mut self.ends[number..count];
                    last.iter_mut().zip(cut).for_each(|(end, cut)| *end = cut);
                }
            }
        }
        if odd != i32x4::splat(0) {
            self.is_cut = true;
            self.measure();
        }
        true
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
                self.words[kept] = self.words[number];
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

/// The bytes at an offset of four buffers. No closure, which would stay a function of its own where it has several callers.
///
/// # Safety
/// Each buffer has these bytes, and nobody writes to them for `'b`.
#[inline(always)]
unsafe fn bytes_of_four<'b, const N: usize>(
    [a, b, c, d]: [NonNull<u8>; 4],
    at: usize,
) -> [&'b [u8; N]; 4] {
    // SAFETY: the caller answers for the bytes.
    unsafe {
        [
            a.add(at).cast().as_ref(),
            b.add(at).cast().as_ref(),
            c.add(at).cast().as_ref(),
            d.add(at).cast().as_ref(),
        ]
    }
}

/// The first four of these, at least one; the last once more where there are fewer.
#[inline(always)]
fn four<A: Copy>(all: &[A]) -> [A; 4] {
    match all.first_chunk() {
        Some(first) => *first,
        None => array::from_fn(|lane| all[lane.min(all.len() - 1)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter;

    fn packets() -> Vec<Vec<u8>> {
        [9, 4, 6].map(|length| (0..length).collect()).into()
    }

    /// Cuts each packet to the length that `decide` answers for its first byte and its length, if it does.
    fn cut(bytes: &mut BurstBytes, mut decide: impl FnMut(u8, usize) -> Option<usize>) {
        let count = bytes.packets();
        let is_done = bytes.cut(0, |number, first: [&[u8; 1]; 4], lengths| {
            let lengths = lengths.to_array();
            i32x4::new(array::from_fn(|lane| {
                let length = lengths[lane];
                let is_there = number + lane < count;
                assert!(is_there || (first[lane], length) == (first[lane - 1], lengths[lane - 1]));
                let answer = is_there.then(|| decide(first[lane][0], length as usize)).flatten();
                answer.map_or(length, |answer| answer as i32)
            }))
        });
        assert!(is_done || bytes.length() == 0);
    }

    /// The destination annotations, if they are known.
    fn destinations(bytes: &mut BurstBytes) -> Option<Vec<u32>> {
        let mut all = Vec::new();
        let mut note = |address, ()| {
            all.push(address);
            0
        };
        bytes.change_destinations(iter::repeat(()), &mut note).then_some(all)
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
            cut(bytes, |_, length| Some(length));
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
    fn words_are_loaded_where_all_packets_have_them() {
        let mut packets: Vec<Vec<u8>> =
            [(0, 9), (50, 54), (90, 96)].map(|(from, to)| (from..to).collect()).into();
        BurstBytes::lend(&mut packets, |bytes| {
            let word = |at: u8| u32::from_ne_bytes([at, at + 1, at + 2, at + 3]);
            let mut words = [0; 3];
            assert!(bytes.load_words(0, 0, &mut words) && words == [0, 50, 90].map(word));
            let before = words;
            for offset in [1, 3, 9, usize::MAX - 4, usize::MAX - 3, usize::MAX] {
                assert!(!bytes.load_words(offset, 0, &mut words), "the shortest has four bytes");
                assert!(!bytes.load_network_words(offset, 0, &mut words), "nothing is marked");
            }
            assert!(!bytes.load_words(0, 1, &mut words), "the last is missing");
            assert!(!bytes.load_words(0, 4, &mut words[..0]), "there is no fifth");
            assert!(!bytes.load_network_words(0, 0, &mut words), "nothing is marked");
            assert_eq!(words, before);
            assert!(bytes.load_words(0, 1, &mut words[..2]) && words[..2] == [50, 90].map(word));
            bytes.retain(|number| number != 1);
            bytes.strip(1);
            bytes.mark_network(1);
            assert!(bytes.load_words(0, 1, &mut words[..1]) && words[0] == word(91));
            let words = &mut words[..2];
            assert!(bytes.load_network_words(0, 0, words) && words == [2, 92].map(word));
            // A header is where it was marked.
            bytes.strip(3);
            assert!(bytes.load_network_words(0, 0, words) && words == [2, 92].map(word));
            for offset in [1, 3, usize::MAX - 5, usize::MAX - 3] {
                assert!(!bytes.load_network_words(offset, 0, words));
                assert!(!bytes.load_words(offset, 0, words));
            }
        });
    }

    #[test]
    fn packets_are_cut() {
        let mut packets = packets();
        BurstBytes::lend(&mut packets, |bytes| {
            bytes.strip(2);
            let lengths = &mut Vec::new();
            cut(bytes, |first, length| {
                lengths.push((first, length));
                Some(length)
            });
            assert_eq!((bytes.is_cut(), &lengths[..]), (false, &[(2, 7), (2, 2), (2, 4)][..]));
            // One without a length stays.
            cut(bytes, |_, length| (length != 7).then_some(9));
            assert!(!bytes.is_cut() && bytes.total() == 7 + 2 + 4);
            // The shortest cannot grow.
            cut(bytes, |_, _| Some(3));
            assert_eq!((bytes.is_cut(), bytes.length(), bytes.total()), (true, 2, 3 + 2 + 3));
            cut(bytes, |first, _| Some(usize::from(first) - 1));
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
            cut(bytes, |_, length| Some(length - 1));
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
            assert!(destinations(bytes).is_none() && bytes.headers().all(<[u8]>::is_empty));
            let summary = bytes.summary();
            assert!(!summary.is_ipv4() && !summary.may_be_to_group() && !summary.has_fix_ip_src());
            assert_eq!((summary.paint(), summary.max_network_len()), (Some(0), None));
            bytes.strip(2);
            bytes.mark_plain_ipv4(3);
            bytes.set_paint(9);
            let expected = u32::from_be_bytes([21, 22, 23, 24]);
            assert_eq!(destinations(bytes), Some(vec![expected, expected]));
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
            assert_eq!(destinations(bytes), Some(vec![expected, expected]));
            // Another mark says nothing about the header, but annotations stay.
            bytes.mark_network(0);
            assert!(!bytes.is_plain_ipv4() && !bytes.summary().is_ipv4());
            assert_eq!(destinations(bytes), Some(vec![expected, expected]));
            // Other annotations are in words, and go where their packets go.
            assert!(bytes.change_destinations([7, 0], |_, item| item));
            assert_eq!(destinations(bytes), Some(vec![7, expected]));
            assert!(bytes.change_destinations([0, 8], |_, item| item));
            assert_eq!(destinations(bytes), Some(vec![7, 8]));
            assert!(bytes.change_destinations([(); 2], |address, ()| address + 1));
            bytes.retain(|number| number == 1);
            assert_eq!(destinations(bytes), Some(vec![9]));
            // Kept words are no annotations.
            assert!(bytes.keep_words(|address| Some(u64::from(address) << 9)));
            assert!(bytes.with_words().map(|it| it.1).eq([9 << 9]));
            assert!(destinations(bytes).is_none() && !bytes.keep_words(|_| Some(1)));
            assert!(bytes.mark_destinations(4) && !bytes.keep_words(|_| None));
        });
        // Addresses that have been cut off are none.
        BurstBytes::lend(&mut packets, |bytes| {
            bytes.mark_plain_ipv4(0);
            cut(bytes, |_, _| Some(19));
            assert!(destinations(bytes).is_none());
        });
    }

    #[test]
    fn packets_are_cut_four_at_a_time() {
        for count in 0..10 {
            let mut packets: Vec<Vec<u8>> = (0..count).map(|n| vec![n as u8; 20 + n]).collect();
            BurstBytes::lend(&mut packets, |bytes| {
                cut(bytes, |first, length| (first % 2 == 0).then_some(length - 2));
                assert_eq!(bytes.is_cut(), count > 0);
                let lengths: Vec<usize> = (0..count).map(|n| 20 + n - 2 * ((n + 1) % 2)).collect();
                // No packet grows, nor does one whose answer is no length.
                for answer in [9, i32::MIN, -1] {
                    let grown =
                        |_, _: [&[u8; 5]; 4], lengths: i32x4| lengths | i32x4::splat(answer);
                    assert!(bytes.cut(2, grown) || count == 0);
                }
                assert!(!bytes.cut(14, |_, _: [&[u8; 5]; 4], lengths| lengths));
                assert!(bytes.whole().map(<[u8]>::len).eq(lengths.iter().copied()));
                assert_eq!(bytes.longest(), lengths.iter().copied().max().unwrap_or(0));
                assert_eq!(bytes.total(), lengths.iter().sum::<usize>() as u64);
            });
        }
    }
}
