//! The bytes of packets that have no descriptors.

use crate::MAX_BURST;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

/// The bytes of a burst's packets that have no descriptors. A device lends them before it makes packets of what it
/// has received, or where it makes none. All packets start at the same offset of their buffers, and have their network
/// headers at the same one. Packets that take another way leave the burst; they stay as they were received.
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

    /// Marks the network headers, which begin with the byte `offset` of each packet, at most
    /// [`length`](BurstBytes::length).
    #[inline]
    pub fn mark_network(&mut self, offset: usize) {
        self.network = Some(self.start + offset.min(self.length()));
    }

    /// Cuts each packet to the length that `decide` answers, and sets its fate; one that is as short stays as it is.
    /// `decide` has its first bytes, as many as the shortest packet has, and its length.
    ///
    /// # Panics
    /// There are not as many fates as packets.
    #[inline(always)]
    pub fn cut(&mut self, fates: &mut [u8], mut decide: impl FnMut(&[u8], usize) -> (u8, usize)) {
        assert_eq!(fates.len(), self.count);
        let (start, first) = (self.start, self.length());
        let (mut least, mut sum) = (u32::MAX, 0);
        let packets = self.buffers[..self.count].iter().zip(&mut *self.ends).zip(fates);
        for ((buffer, end), fate) in packets {
            let length = *end as usize - start;
            // SAFETY: as in `iter`.
            let bytes = unsafe { slice::from_raw_parts(buffer.add(start).as_ptr(), first) };
            let (its_fate, cut) = decide(bytes, length);
            *fate = its_fate;
            *end = (start + cut.min(length)) as u32;
            least = least.min(*end);
            sum += u64::from(*end);
        }
        if self.count > 0 {
            self.is_cut |= sum != self.sum_of_ends;
            (self.least_end, self.sum_of_ends) = (least as usize, sum);
        }
    }

    /// Has packets leave the burst of which `stays` is false, by their numbers.
    pub fn retain(&mut self, stays: impl FnMut(usize) -> bool) {
        let mut leaving = [NonNull::dangling(); MAX_BURST];
        let mut answers = [false; MAX_BURST];
        let answers = &mut answers[..self.count];
        // All answers come first: nothing is moved if one panics.
        answers.iter_mut().zip((0..).map(stays)).for_each(|(stays, answer)| *stays = answer);
        let (mut kept, mut left) = (0, 0);
        let (mut least, mut sum) = (u32::MAX, 0);
        for (number, &stays) in answers.iter().enumerate() {
            let (buffer, end) = (self.buffers[number], self.ends[number]);
            if stays {
                (self.buffers[kept], self.ends[kept]) = (buffer, end);
                least = least.min(end);
                sum += u64::from(end);
                kept += 1;
            } else {
                leaving[left] = buffer;
                left += 1;
            }
        }
        self.buffers[kept..self.count].copy_from_slice(&leaving[..left]);
        self.count = kept;
        self.sum_of_ends = sum;
        self.least_end = if kept > 0 { least as usize } else { self.start };
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
            bytes.cut(&mut [], |_, length| (0, length));
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
        let (mut packets, mut fates) = (packets(), [0; 3]);
        BurstBytes::lend(&mut packets, |bytes| {
            bytes.strip(2);
            bytes.cut(&mut fates, |first, length| (first[0] + length as u8, length));
            assert_eq!((bytes.is_cut(), fates), (false, [2 + 7, 2 + 2, 2 + 4]));
            // The shortest cannot grow.
            bytes.cut(&mut fates, |_, length| (length as u8, 3));
            assert_eq!((bytes.is_cut(), bytes.length(), bytes.total()), (true, 2, 3 + 2 + 3));
            bytes.cut(&mut fates, |first, length| (length as u8, usize::from(first[1]) - 2));
            assert_eq!((bytes.length(), bytes.total(), fates), (1, 3, [3, 2, 3]));
            assert!(bytes.whole().all(|bytes| bytes == [2]));
        });
        assert_eq!(packets, [[0, 1, 2], [0, 1, 2], [0, 1, 2]]);
    }

    #[test]
    fn packets_leave_a_burst() {
        let mut packets = packets();
        BurstBytes::lend(&mut packets, |bytes| {
            bytes.cut(&mut [0; 3], |_, length| (0, length - 1));
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
}
