//! Selection of the packets of a burst that have a certain fate.

/// The packets of a burst that have a certain fate.
#[derive(Default)]
pub(super) struct Selection {
    /// A bit for each packet, 64 to a word.
    words: Vec<u64>,
}

/// The lowest bit of each byte.
const ONES: u64 = u64::from_ne_bytes([1; 8]);
/// All bits of each byte but the highest.
const LOW: u64 = u64::from_ne_bytes([0x7f; 8]);
/// A factor that moves the lowest bit of each byte into the highest byte, in order.
const GATHER: u64 = 0x0102_0408_1020_4080;

impl Selection {
    /// Selects the packets with this fate; returns their number.
    #[inline]
    pub(super) fn select(&mut self, fates: &[u8], fate: u8) -> u16 {
        self.words.clear();
        let mut count = 0;
        for fates in fates.chunks(64) {
            let mut word = 0;
            let (eights, rest) = fates.as_chunks();
            for (&eight, n) in eights.iter().zip(0..) {
                word |= equal(eight, fate) << (8 * n);
            }
            if !rest.is_empty() {
                let mut eight = [!fate; 8];
                eight[..rest.len()].copy_from_slice(rest);
                word |= equal(eight, fate) << (8 * eights.len());
            }
            self.words.push(word);
            count += word.count_ones() as u16;
        }
        count
    }

    /// Indices of the selected packets, in order.
    #[inline]
    pub(super) fn indices(&self) -> Indices<'_> {
        Indices { words: self.words.iter(), word: 0, start: usize::MAX - 63 }
    }
}

/// A bit for each of eight fates: whether it is `fate`.
#[inline(always)]
fn equal(eight: [u8; 8], fate: u8) -> u64 {
    let odd = u64::from_le_bytes(eight) ^ (ONES * u64::from(fate));
    // The highest bit of each byte that is zero.
    let zero = !(((odd & LOW) + LOW) | odd | LOW);
    (zero >> 7).wrapping_mul(GATHER) >> 56
}

/// Indices of selected packets.
pub(super) struct Indices<'a> {
    words: std::slice::Iter<'a, u64>,
    /// The bits of the present word that are left.
    word: u64,
    /// The index of its first packet.
    start: usize,
}

impl Iterator for Indices<'_> {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        while self.word == 0 {
            self.word = *self.words.next()?;
            self.start = self.start.wrapping_add(64);
        }
        let index = self.start + self.word.trailing_zeros() as usize;
        self.word &= self.word - 1;
        Some(index)
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
                assert_eq!(selection.indices().collect::<Vec<_>>(), expected);
            }
        }
    }
}
