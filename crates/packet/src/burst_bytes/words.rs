//! Words of packets without descriptors: four bytes of each, destination annotations, and what elements keep for them.

use super::BurstBytes;
use std::iter;
use std::slice;

/// Where the destination annotations of packets are.
#[derive(Clone, Copy)]
pub(super) enum Destinations {
    /// Nobody knows them.
    Unknown,
    /// The addresses at this offset of the buffers.
    InPackets(usize),
    /// The words; where they are 0, the addresses at this offset.
    InWords(usize),
}

impl BurstBytes<'_> {
    /// Writes the four bytes at `offset` of each packet, as they are in memory, into `words`: of as many packets as
    /// there are words, from number `first` on. `false`, and nothing is done, if the shortest packet ends before, or
    /// there are fewer packets.
    #[inline(always)]
    pub fn load_words(&self, offset: usize, first: usize, words: &mut [u32]) -> bool {
        self.load_words_behind(self.start, offset, first, words)
    }

    /// The same, with `offset` from the network header on; `false` if packets have none.
    #[inline(always)]
    pub fn load_network_words(&self, offset: usize, first: usize, words: &mut [u32]) -> bool {
        let network = self.network;
        network.is_some_and(|network| self.load_words_behind(network, offset, first, words))
    }

    /// The same, with `offset` from one of the buffers on that lies at or behind the first byte that was lent.
    #[inline(always)]
    fn load_words_behind(
        &self,
        from: usize,
        offset: usize,
        first: usize,
        words: &mut [u32],
    ) -> bool {
        let buffers = self.buffers[..self.count].get(first..);
        let Some(buffers) = buffers.and_then(|it| it.get(..words.len())) else { return false };
        let last = self.least_end.checked_sub(from + size_of::<u32>());
        if last.is_none_or(|last| offset > last) {
            return false;
        }
        for (word, buffer) in words.iter_mut().zip(buffers) {
            // SAFETY: `new`'s caller answers for the bytes: these four begin at or behind the first one that was lent, and
            // end at or before `least_end`.
            *word = unsafe { buffer.add(from + offset).cast::<u32>().read_unaligned() };
        }
        true
    }

    /// Gives packets the destination annotations that `next_hop` answers for those that they have, and for the items of
    /// `with`, one for each packet: 0 where they stay. `false`, and nothing is done, if it is not known which they have.
    #[inline(always)]
    pub fn change_destinations<A>(
        &mut self,
        with: impl IntoIterator<Item = A>,
        mut next_hop: impl FnMut(u32, A) -> u32,
    ) -> bool {
        let mut any = 0;
        let is_known = match self.destinations {
            Destinations::InPackets(_) => self.for_each_destination(with, |to, item, word| {
                let changed = next_hop(to, item);
                any |= changed;
                *word = changed.into();
            }),
            _ => self.for_each_destination(with, |to, item, word| match next_hop(to, item) {
                0 => {}
                changed => *word = changed.into(),
            }),
        };
        if let Destinations::InPackets(offset) = self.destinations
            && any != 0
        {
            self.destinations = Destinations::InWords(offset);
        }
        is_known
    }

    /// Keeps the words that `answer` has for the destination annotations of packets, which nobody knows then; `false` if
    /// nobody knows them now, or if there is none for one.
    #[inline(always)]
    pub fn keep_words(&mut self, mut answer: impl FnMut(u32) -> Option<u64>) -> bool {
        let mut are_all = true;
        let nothing = iter::repeat(());
        let is_known =
            self.for_each_destination(nothing, |address, (), word| match answer(address) {
                Some(answer) => *word = answer,
                None => are_all = false,
            });
        self.destinations = Destinations::Unknown;
        is_known && are_all
    }

    /// Calls `each` for all destination annotations, with the words of their packets; `false` if they are not known.
    #[inline(always)]
    fn for_each_destination<A>(
        &mut self,
        with: impl IntoIterator<Item = A>,
        mut each: impl FnMut(u32, A, &mut u64),
    ) -> bool {
        let (offset, in_words) = match self.destinations {
            Destinations::InPackets(offset) => (offset, false),
            Destinations::InWords(offset) => (offset, true),
            Destinations::Unknown => return false,
        };
        if offset + size_of::<u32>() > self.least_end {
            return false;
        }
        let words = self.words[..self.count].iter_mut().zip(with);
        for (buffer, (word, item)) in self.buffers.iter().zip(words) {
            let address = match *word as u32 {
                changed if in_words && changed != 0 => changed,
                // SAFETY: as in `iter`; the four bytes end before `least_end`.
                _ => u32::from_be(unsafe { buffer.add(offset).cast::<u32>().read_unaligned() }),
            };
            each(address, item, word);
        }
        true
    }

    /// The first bytes of each packet, to write to, and the word that was kept for it.
    #[inline(always)]
    pub fn with_words(&mut self) -> impl Iterator<Item = (&mut [u8], u64)> {
        let (start, length) = (self.start, self.length());
        // SAFETY: as in `iter_mut`.
        let bytes = self.buffers[..self.count].iter().map(move |buffer| unsafe {
            slice::from_raw_parts_mut(buffer.add(start).as_ptr(), length)
        });
        bytes.zip(self.words.iter().copied())
    }

    /// Sets the destination annotations to the four bytes at `offset` of each packet; `false`, and nothing is done, if
    /// one is shorter.
    #[inline]
    pub fn mark_destinations(&mut self, offset: usize) -> bool {
        let is_there =
            self.length().checked_sub(size_of::<u32>()).is_some_and(|last| offset <= last);
        if is_there {
            self.destinations = Destinations::InPackets(self.start + offset);
        }
        is_there
    }
}
