//! A test of four bytes of a packet.

use crate::packet::Packet;

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
    fn none_is_passed_by_no_packet() {
        for len in [0, 64, 65_534, 65_535, 70_000] {
            assert!(!WordTest::NONE.passes(&Packet::from_bytes(&vec![0; len])));
        }
    }
}
