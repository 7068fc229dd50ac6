//! Tests that all must hold, compared two words at a time.

use super::graph::Target;
use super::header_words::HeaderWords;
use super::pattern::Base;

/// The most tests of one list.
pub(crate) const MOST: usize = 8;
/// Bytes of a window.
const WINDOW: u16 = 8;
/// Bytes of a word.
const WORD: u16 = 4;

/// A word of a header that must have a value, or the packet goes to `no`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordEquality {
    pub(crate) base: Base,
    pub(crate) offset: u16,
    pub(crate) mask: u32,
    pub(crate) value: u32,
    pub(crate) no: Target,
}

/// Eight bytes of a header that must have a value under a mask. Mask and value are stored in the byte
/// order of memory, so that the loaded bytes need no swap.
#[derive(Clone, Copy, Debug)]
struct WindowEquality {
    mask: u64,
    value: u64,
    no: Target,
    offset: u16,
    base: Base,
}

impl WindowEquality {
    /// A window that ends with the word, so that it needs no byte beyond it; the header's first word has
    /// the next one beside it.
    fn new(word: &WordEquality) -> WindowEquality {
        let end = (word.offset + WORD).max(WINDOW);
        let (base, no) = (word.base, word.no);
        let mut window = WindowEquality { mask: 0, value: 0, no, offset: end - WINDOW, base };
        window.add(word);
        window
    }

    /// The shift of a word in the window, as a big-endian number; `None` if it is not inside.
    fn shift(&self, offset: u16) -> Option<u32> {
        let from = offset.checked_sub(self.offset)?;
        (WINDOW - WORD).checked_sub(from).map(|after| u32::from(after) * 8)
    }

    /// Adds a word, if it is inside, leads to the same target, and contradicts no word before.
    fn add(&mut self, word: &WordEquality) -> bool {
        let Some(shift) = self.shift(word.offset) else { return false };
        let (mask, value) = (word.mask, word.value);
        let [mask, value] = [mask, value].map(|word| (u64::from(word) << shift).to_be());
        let is_possible = (self.value ^ value) & self.mask & mask == 0;
        let fits = (self.base, self.no) == (word.base, word.no) && is_possible;
        if fits {
            (self.mask, self.value) = (self.mask | mask, self.value | value);
        }
        fits
    }
}

/// Comparisons of a packet in turn: the first that does not hold decides where it goes.
#[derive(Clone, Debug)]
pub(crate) struct Comparisons {
    windows: Box<[WindowEquality]>,
    yes: Target,
}

impl Comparisons {
    /// The comparisons of words; a packet for which all hold goes to `yes`. Words that lead to one
    /// target are compared in any order: the result is the same.
    pub(crate) fn new(words: &[WordEquality], yes: Target) -> Comparisons {
        let mut windows: Vec<WindowEquality> = Vec::new();
        for alike in words.chunk_by(|a, b| a.no == b.no) {
            // From the last word on: its window has room for the one before it.
            let mut sorted: Vec<&WordEquality> = alike.iter().collect();
            sorted.sort_by_key(|word| (word.base, std::cmp::Reverse(word.offset)));
            let first = windows.len();
            for word in sorted {
                let is_added = windows[first..].last_mut().is_some_and(|last| last.add(word));
                if !is_added {
                    windows.push(WindowEquality::new(word));
                }
            }
        }
        Comparisons { windows: windows.into(), yes }
    }

    /// The target of a packet, if it has the bytes that are compared.
    #[inline(always)]
    pub(crate) fn find<W: HeaderWords>(&self, words: &W) -> Option<Target> {
        for window in &self.windows {
            let bytes = words.window(window.base, window.offset)?;
            if bytes & window.mask != window.value {
                return Some(window.no);
            }
        }
        Some(self.yes)
    }

    /// Whether all of them compare bytes from the network header on.
    pub(crate) fn are_of_network(&self) -> bool {
        let of_network = |base| matches!(base, Base::Network | Base::Transport);
        self.windows.iter().all(|window| of_network(window.base))
    }

    /// How many windows are compared at most.
    pub(crate) fn len(&self) -> usize {
        self.windows.len()
    }

    /// The memory of the windows, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.windows[..])
    }
}
