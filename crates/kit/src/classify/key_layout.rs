//! Keys of [`rules`](crate::rules) for packets: the bits that patterns read, side by side.

use super::bytecode::Load;
use super::header_words::HeaderWords;
use super::listing::listing_base;
use super::pattern::{Base, Test};
use crate::rules::{Key, WORDS};
use std::fmt;

/// The position of bits in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPosition {
    pub(crate) word: usize,
    pub(crate) shift: u32,
}

impl KeyPosition {
    /// Sets these bits of a key, which must be zero.
    #[inline(always)]
    fn put(self, key: &mut Key, bits: u32) {
        key.0[self.word % WORDS] |= u64::from(bits) << self.shift;
    }

    /// A key with only these bits.
    pub(crate) fn key(self, bits: u32) -> Key {
        let mut key = Key::default();
        self.put(&mut key, bits);
        key
    }
}

/// Bits of eight consecutive bytes of the packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketBits {
    pub(crate) base: Base,
    /// The offset of the first byte.
    pub(crate) offset: u16,
    pub(crate) mask: u64,
    /// The word of the key that has the bits, and how far they are rotated to the right.
    pub(crate) word: usize,
    pub(crate) rotation: u32,
}

impl PacketBits {
    #[inline(always)]
    fn put(&self, key: &mut Key, bits: u64) {
        key.0[self.word % WORDS] |= self.rotated(bits);
    }

    #[inline(always)]
    pub(crate) fn rotated(&self, bits: u64) -> u64 {
        (bits & self.mask).rotate_right(self.rotation)
    }

    /// The eight bytes, with zeros beyond the packet's end.
    fn padded<W: HeaderWords>(&self, words: &W) -> u64 {
        let header = words.header(self.base).get(usize::from(self.offset)..);
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(header.unwrap_or_default()).for_each(|(to, from)| *to = *from);
        u64::from_be_bytes(bytes)
    }
}

/// The bits of the key that hold the result of a test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestBits {
    load: Load,
    lo: u32,
    span: u32,
    /// Set if the packet passes the test.
    pub(crate) yes: Option<KeyPosition>,
    /// Set if the packet is long enough for the test and does not pass it.
    pub(crate) no: Option<KeyPosition>,
}

impl TestBits {
    pub(crate) fn new(test: &Test, yes: Option<KeyPosition>, no: Option<KeyPosition>) -> TestBits {
        let (load, shift) = Load::new(test);
        TestBits { load, lo: test.lo << shift, span: (test.hi - test.lo) << shift, yes, no }
    }

    #[inline(always)]
    fn put(&self, key: &mut Key, word: u32) {
        let passes = word.wrapping_sub(self.lo) <= self.span;
        if let Some(yes) = self.yes {
            yes.put(key, passes.into());
        }
        if let Some(no) = self.no {
            no.put(key, (!passes).into());
        }
    }
}

/// The bit of the key that is set if the packet has so many bytes from a header on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LengthBit {
    pub(crate) base: Base,
    pub(crate) bytes: u16,
    pub(crate) position: KeyPosition,
}

/// Instructions of a key, as callgrind counts them.
const BASE: u32 = 50;
/// Instructions of each part of it.
const PART: u32 = 25;
/// Instructions of each test result.
const RESULT: u32 = 24;
/// The instructions of the cheapest key.
pub(crate) const MIN_COST: u32 = BASE + PART;

/// The layout of the keys of a program: the parts of a packet that make up each key.
#[derive(Debug, Default)]
pub(crate) struct KeyLayout {
    pub(crate) parts: Vec<PacketBits>,
    pub(crate) tests_bits: Vec<TestBits>,
    pub(crate) length_bits: Vec<LengthBit>,
    /// The headers that are read, with the length of a packet that has all words, and the number of
    /// parts in each. The parts are in this order.
    headers: Vec<(Base, usize, usize)>,
    /// The bits of all `length_bits`.
    all_lengths: Key,
}

impl KeyLayout {
    /// The parts must be sorted by header.
    pub(crate) fn new(
        parts: Vec<PacketBits>,
        tests_bits: Vec<TestBits>,
        length_bits: Vec<LengthBit>,
    ) -> KeyLayout {
        let mut headers = Vec::new();
        for base in [Base::Packet, Base::Link, Base::Network, Base::Transport] {
            // Words are read whole, even if the mask leaves out their last bytes.
            let here = parts.iter().filter(|it| it.base == base);
            let of_parts = here.clone().map(|it| it.offset + 8);
            let of_outcomes = tests_bits.iter().filter(|it| it.load.base == base);
            let ends = of_parts.chain(of_outcomes.map(|it| it.load.offset + 4));
            if let Some(bytes) = ends.max() {
                headers.push((base, usize::from(bytes), here.count()));
            }
        }
        debug_assert!(parts.is_sorted_by_key(|it| it.base));
        let mut all_lengths = Key::default();
        length_bits.iter().for_each(|it| it.position.put(&mut all_lengths, 1));
        KeyLayout { parts, tests_bits, length_bits, headers, all_lengths }
    }

    /// The key of a packet.
    #[inline]
    pub(crate) fn key<W: HeaderWords>(&self, words: &W) -> Key {
        let mut key = self.all_lengths;
        let mut parts = &self.parts[..];
        for &(base, length, count) in &self.headers {
            let bytes = words.bytes(base);
            if !words.has_length(bytes, length) {
                return self.key_of_short(words);
            }
            let Some((here, rest)) = parts.split_at_checked(count) else { break };
            for part in here {
                part.put(&mut key, words.long(bytes, base, part.offset).unwrap_or_default());
            }
            parts = rest;
        }
        for test_bits in &self.tests_bits {
            test_bits.put(&mut key, test_bits.load.load(words));
        }
        key
    }

    /// The key of a packet that is too short for some of the words.
    #[cold]
    fn key_of_short<W: HeaderWords>(&self, words: &W) -> Key {
        let mut key = Key::default();
        for part in &self.parts {
            part.put(&mut key, part.padded(words));
        }
        let has = |base, bytes: u16| words.length(base) >= usize::from(bytes);
        for test_bits in self.tests_bits.iter().filter(|it| has(it.load.base, it.load.length())) {
            test_bits.put(&mut key, test_bits.load.load_padded(words));
        }
        for length_bit in self.length_bits.iter().filter(|it| has(it.base, it.bytes)) {
            length_bit.position.put(&mut key, 1);
        }
        key
    }

    /// The approximate instructions of a key.
    pub(crate) fn cost(&self) -> u32 {
        BASE + PART * self.parts.len() as u32 + RESULT * self.tests_bits.len() as u32
    }
}

impl fmt::Display for KeyLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for PacketBits { base, offset, mask, word, rotation } in &self.parts {
            let at = listing_base(*base) + usize::from(*offset);
            writeln!(f, "key {word} {at}%{mask:016x} turned by {rotation}")?;
        }
        for TestBits { load, lo, span, yes, no } in &self.tests_bits {
            let range = match span {
                0 => format!("{lo:08x}"),
                _ => format!("{lo:08x}-{:08x}", lo + span),
            };
            for (position, word) in [(yes, "yes"), (no, "no")] {
                if let Some(position) = position {
                    writeln!(f, "key {position} {}/{range}%{:08x} {word}", at(load), load.mask)?;
                }
            }
        }
        for LengthBit { base, bytes, position } in &self.length_bits {
            writeln!(f, "key {position} {} there", listing_base(*base) + usize::from(*bytes) - 1)?;
        }
        Ok(())
    }
}

/// The offset of a word in Click's listings.
fn at(load: &Load) -> usize {
    listing_base(load.base) + usize::from(load.offset)
}

impl fmt::Display for KeyPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit {}", self.word, self.shift)
    }
}
