//! The layout of keys for a set of patterns: the packet bits that make up each key.

use super::bytecode::Load;
use super::key_layout::{KeyLayout, KeyPosition, LengthBit, PacketBits, TestBits};
use super::pattern::{Base, Expr, Pattern, Test};
use super::prefixes::Bits;
use crate::rules::{Key, WORDS};
use rapidhash::RapidHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The result of a test that a pattern requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// The packet passes the test.
    Yes,
    /// The packet is long enough and does not pass.
    No,
    /// The packet is too short, or does not pass.
    NotYes,
    /// The packet is too short, or passes.
    NotNo,
}

impl Requirement {
    pub(crate) fn new(negated: bool, holds: bool) -> Requirement {
        match (negated, holds) {
            (false, true) => Requirement::Yes,
            (true, true) => Requirement::No,
            (false, false) => Requirement::NotYes,
            (true, false) => Requirement::NotNo,
        }
    }
}

/// The largest number of tests whose results are bits of the key.
const MAX_TESTS_WITH_BITS: usize = 8;
/// A test gets a bit for its result if it is used more than once per so many patterns. The bit
/// costs every packet the evaluation of the test, and adds masks.
const PATTERNS_PER_USE: u64 = 32;
/// The words of packets that are considered, the most used ones.
const MAX_WORDS: usize = 64;
/// Words of a key for packet bits; the rest is for results and lengths.
const WORDS_FOR_PARTS: usize = WORDS - 1;

/// For each node of a pattern, whether its truth and whether its falsehood is needed.
pub(crate) fn needed_values(pattern: &Pattern) -> Vec<[bool; 2]> {
    let mut needed = vec![[false; 2]; pattern.nodes.len()];
    if let Some(root) = needed.last_mut() {
        root[0] = true;
    }
    for (at, expr) in pattern.nodes.iter().enumerate().rev() {
        let [truth, falsehood] = needed[at];
        let mut need = |id: u32, of: [bool; 2]| {
            let needed = &mut needed[id as usize];
            *needed = [needed[0] || of[0], needed[1] || of[1]];
        };
        match *expr {
            Expr::Const(..) | Expr::Test { .. } => {}
            Expr::Not(a) => need(a, [falsehood, truth]),
            Expr::And(a, b) | Expr::Or(a, b) => {
                need(a, [truth, falsehood]);
                need(b, [truth, falsehood]);
            }
            Expr::Cond(a, b, c) => {
                need(a, [true, true]);
                need(b, [truth, falsehood]);
                need(c, [truth, falsehood]);
            }
        }
    }
    needed
}

/// How often each result of a test is required.
#[derive(Clone, Copy, Default)]
struct RequirementCounts([u64; 4]);

impl RequirementCounts {
    fn has_any(&self, requirements: [Requirement; 2]) -> bool {
        requirements.iter().any(|&it| self.0[it as usize] > 0)
    }

    fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    /// How often the required result needs more than one masked word.
    fn uses_of_several_terms(&self, test: &Test) -> u64 {
        let [yes, _, _, not_no] = self.0;
        self.sum() - if test.is_equality() { yes + not_no } else { 0 }
    }
}

/// The layout of keys for a set of patterns, and the position of each test's bits in it.
pub(crate) struct KeyPlan {
    pub(crate) keys: KeyLayout,
    /// The part that has a word, and how many bits of the part are below the word.
    words: RapidHashMap<(Base, u16), (usize, u32)>,
    tests_bits: RapidHashMap<Test, usize>,
    length_bits: RapidHashMap<(Base, u16), KeyPosition>,
}

impl KeyPlan {
    pub(crate) fn new<'a>(patterns: impl ExactSizeIterator<Item = &'a Pattern>) -> KeyPlan {
        let often = patterns.len() as u64 / PATTERNS_PER_USE;
        let tests = count_uses(patterns);
        let bits = tests_with_bits(&tests, often);
        let mut free = FreeBits { used: [0; WORDS] };
        let pairs = pair_words(&tests, &bits).into_iter();
        let mut selected: Vec<(PacketBits, WordPair)> =
            pairs.filter_map(|pair| Some((pair.part(&mut free)?, pair))).collect();
        selected.sort_by_key(|(part, _)| part.base);
        let mut words = RapidHashMap::default();
        for (at, (_, pair)) in selected.iter().enumerate() {
            words.extend(pair.words.iter().map(|&(word, below)| (word, (at, below))));
        }
        let parts = selected.into_iter().map(|it| it.0).collect();
        let mut tests_bits = Vec::new();
        for test in &bits {
            let uses = &tests[test];
            let mut bit = |is_used: bool| is_used.then(|| free.take(1, WORDS)).flatten();
            let yes = bit(uses.has_any([Requirement::Yes, Requirement::NotYes]));
            let no = bit(uses.has_any([Requirement::No, Requirement::NotNo]));
            tests_bits.push(TestBits::new(test, yes, no));
        }
        let mut lengths: Vec<(Base, u16)> =
            tests.keys().filter(|test| !bits.contains(test)).map(length).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let length_bits: RapidHashMap<(Base, u16), KeyPosition> =
            lengths.into_iter().filter_map(|at| Some((at, free.take(1, WORDS)?))).collect();
        let length_bit = |(&(base, bytes), &position): (&(Base, u16), &KeyPosition)| LengthBit {
            base,
            bytes,
            position,
        };
        KeyPlan {
            keys: KeyLayout::new(parts, tests_bits, length_bits.iter().map(length_bit).collect()),
            words,
            tests_bits: bits.into_iter().enumerate().map(|(at, test)| (test, at)).collect(),
            length_bits,
        }
    }

    /// The bits for a test's result, if it has any.
    pub(crate) fn test_bits(&self, test: &Test) -> Option<&TestBits> {
        self.tests_bits.get(test).map(|&at| &self.keys.tests_bits[at])
    }

    /// Bits of the word that a test reads, as mask and value of a key.
    pub(crate) fn bits(&self, test: &Test, (mask, value): Bits) -> Option<(Key, Key)> {
        let &(part, below) = self.words.get(&(test.base, test.offset))?;
        let part = &self.keys.parts[part];
        let shift = Load::new(test).1;
        let key = |bits: u32| {
            let mut key = Key::default();
            key.0[part.word] = part.rotated(u64::from(bits << shift) << below);
            key
        };
        Some((key(mask), key(value)))
    }

    /// The bit that tells whether the packet is long enough for a test.
    pub(crate) fn length_bit(&self, test: &Test) -> Option<KeyPosition> {
        self.length_bits.get(&length(test)).copied()
    }
}

/// The length of a packet that a test needs.
fn length(test: &Test) -> (Base, u16) {
    let load = Load::new(test).0;
    (load.base, load.length())
}

/// How often each test is used.
fn count_uses<'a>(
    patterns: impl Iterator<Item = &'a Pattern>,
) -> RapidHashMap<Test, RequirementCounts> {
    let mut tests: RapidHashMap<Test, RequirementCounts> = RapidHashMap::default();
    for pattern in patterns {
        for (expr, needed) in pattern.nodes.iter().zip(needed_values(pattern)) {
            let Expr::Test { test, negated, .. } = *expr else { continue };
            let uses = tests.entry(test).or_default();
            for (needed, holds) in needed.into_iter().zip([true, false]) {
                uses.0[Requirement::new(negated, holds) as usize] += u64::from(needed);
            }
        }
    }
    tests
}

/// The tests that get bits for their results: those used often that would otherwise need several
/// terms.
fn tests_with_bits(tests: &RapidHashMap<Test, RequirementCounts>, often: u64) -> Vec<Test> {
    let hard = tests.iter().map(|(test, uses)| (uses.uses_of_several_terms(test), *test));
    let mut selected: Vec<(u64, Test)> = hard.filter(|(hard, _)| *hard > often).collect();
    let order = |test: &Test| (test.base, test.offset, test.mask, test.lo, test.hi);
    selected.sort_by_key(|(hard, test)| (Reverse(*hard), order(test)));
    selected.truncate(MAX_TESTS_WITH_BITS);
    selected.into_iter().map(|(_, test)| test).collect()
}

/// Eight bytes of packets that keys need bits of.
struct WordPair {
    base: Base,
    offset: u16,
    mask: u64,
    uses: u64,
    /// The words in these bytes, and how many bits are below each.
    words: Vec<((Base, u16), u32)>,
}

impl WordPair {
    fn width(&self) -> u32 {
        u64::BITS - self.mask.leading_zeros() - self.mask.trailing_zeros()
    }

    fn part(&self, free: &mut FreeBits) -> Option<PacketBits> {
        let KeyPosition { word, shift } = free.take(self.width(), WORDS_FOR_PARTS)?;
        let rotation = (u64::BITS + self.mask.trailing_zeros() - shift) % u64::BITS;
        Some(PacketBits { base: self.base, offset: self.offset, mask: self.mask, word, rotation })
    }
}

/// The words of all tests without bits for their results; neighbours are paired. The most used and
/// widest come first.
fn pair_words(tests: &RapidHashMap<Test, RequirementCounts>, bits: &[Test]) -> Vec<WordPair> {
    let mut words: BTreeMap<(Base, u16), (Test, u64)> = BTreeMap::new();
    for (test, uses) in tests.iter().filter(|(test, _)| !bits.contains(test)) {
        let (all, sum) = words.entry((test.base, test.offset)).or_insert((*test, 0));
        all.mask |= test.mask;
        *sum += uses.sum();
    }
    // The widest words come first, each with the wider of its neighbours.
    let mut left: Vec<(Load, (Base, u16), u64)> =
        words.into_iter().map(|(at, (test, uses))| (Load::new(&test).0, at, uses)).collect();
    left.sort_by_key(|(_, at, uses)| (Reverse(*uses), *at));
    left.truncate(MAX_WORDS);
    left.sort_by_key(|(load, ..)| Reverse(load.mask.count_ones()));
    let mut pairs: Vec<WordPair> = Vec::new();
    while !left.is_empty() {
        let (load, at, uses) = left.remove(0);
        let is_near = |(it, ..): &(Load, (Base, u16), u64)| {
            it.base == load.base && it.offset.abs_diff(load.offset) == 4
        };
        let near = left.iter().position(is_near).map(|near| left.remove(near));
        // An unpaired word comes last in the eight bytes, so that only bytes before it are read.
        let first = near.map_or(load.offset.saturating_sub(4), |it| it.0.offset.min(load.offset));
        let mut both =
            WordPair { base: load.base, offset: first, mask: 0, uses: 0, words: Vec::new() };
        for (load, at, uses) in std::iter::once((load, at, uses)).chain(near) {
            let below = 32 - 8 * u32::from(load.offset - first);
            both.mask |= u64::from(load.mask) << below;
            both.uses += uses;
            both.words.push((at, below));
        }
        pairs.push(both);
    }
    pairs.sort_by_key(|it| (Reverse(it.uses), Reverse(it.width()), it.base, it.offset));
    pairs
}

/// The free bits of a key: those above the used bits of each word.
struct FreeBits {
    used: [u32; WORDS],
}

impl FreeBits {
    /// Allocates adjacent bits in one of the first `words` words.
    fn take(&mut self, width: u32, words: usize) -> Option<KeyPosition> {
        let fits = |used: &u32| used + width <= u64::BITS;
        let word = self.used.iter().take(words).position(fits)?;
        let shift = self.used[word];
        self.used[word] += width;
        Some(KeyPosition { word, shift })
    }
}
