//! A test of four bytes of a packet.

use crate::BurstBytes;
use crate::packet::Packet;

/// Packets of a burst whose words are loaded before any is compared.
const WORDS: usize = 32;

/// A comparison of four bytes of a packet with a value under a mask. Shorter packets do not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordTest {
    offset: u16,
    /// In the order of memory, as the value.
    mask: u32,
    value: u32,
}

impl WordTest {
    /// No packet of less than 64 KiB passes, and finds that out by its length.
    pub const NONE: WordTest = WordTest { offset: u16::MAX, mask: 0, value: 1 };

    /// The test whether the big-endian word at `offset` is `value` where `mask` has bits.
    pub fn new(offset: u16, mask: u32, value: u32) -> WordTest {
        WordTest { offset, mask: mask.to_be(), value: value.to_be() }
    }

    /// Whether a packet passes.
    #[inline(always)]
    pub fn passes(&self, packet: &Packet) -> bool {
        self.passes_bytes(packet.bytes())
    }

    /// Whether bytes pass.
    #[inline(always)]
    pub fn passes_bytes(&self, bytes: &[u8]) -> bool {
        let word = bytes.get(usize::from(self.offset)..).and_then(<[u8]>::first_chunk);
        word.is_some_and(|word| u32::from_ne_bytes(*word) & self.mask == self.value)
    }

    /// Whether all packets of a burst pass.
    #[inline]
    pub fn passes_all(&self, bytes: &BurstBytes) -> bool {
        let mut words = [0; WORDS];
        (0..bytes.packets()).step_by(WORDS).all(|first| {
            let words = &mut words[..WORDS.min(bytes.packets() - first)];
            // Without a branch for each: several words are looked at together.
            bytes.load_words(self.offset.into(), first, words)
                && words.iter().fold(0, |odd, word| odd | (word & self.mask ^ self.value)) == 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_with_the_value_pass() {
        let test = WordTest::new(2, 0xffff_0000, 0x0800_0000);
        let passes = |bytes: &[u8]| test.passes(&Packet::from_bytes(bytes));
        assert!(passes(&[1, 2, 8, 0, 5, 6]));
        assert!(!passes(&[1, 2, 8, 1, 5, 6]));
        assert!(!passes(&[1, 2, 8, 0, 5]));
        assert!(!passes(&[]));
    }

    #[test]
    fn a_burst_passes_if_all_its_packets_do() {
        let test = WordTest::new(2, 0xffff_0000, 0x0800_0000);
        for count in [0, 1, WORDS - 1, WORDS, WORDS + 1, 3 * WORDS + 2] {
            let mut packets = vec![vec![1, 2, 8, 0, 5, 6]; count];
            assert!(BurstBytes::lend(&mut packets, |bytes| test.passes_all(bytes)));
            for odd in [&[1, 2, 8, 1, 5, 6][..], &[1, 2, 8, 0, 5]] {
                for place in (0..count).rev().step_by(7) {
                    let mut packets = packets.clone();
                    packets[place] = odd.to_vec();
                    assert!(!BurstBytes::lend(&mut packets, |bytes| test.passes_all(bytes)));
                }
            }
        }
        let mut packets = vec![vec![0; 9]];
        assert!(!BurstBytes::lend(&mut packets, |bytes| WordTest::NONE.passes_all(bytes)));
    }

    #[test]
    fn none_is_passed_by_no_packet() {
        for len in [0, 64, 65_534, 65_535, 70_000] {
            assert!(!WordTest::NONE.passes(&Packet::from_bytes(&vec![0; len])));
        }
    }
}
