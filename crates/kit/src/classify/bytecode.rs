//! The executable form of a program: tests, and dispatches that replace whole runs of tests.

use super::comparisons::Comparisons;
use super::dispatch::{HashDispatch, IntervalDispatch};
use super::first::{First, NetworkLookup, SingleTest};
use super::graph::{DROP, Graph, Target};
use super::header_words::HeaderWords;
use super::instructions::Instructions;
use super::pattern::{Base, Test};

/// A load of a masked word from a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// The offset from the header `base`.
    pub(super) offset: u16,
    pub(super) base: Base,
    /// How many of the four bytes the mask needs.
    needs: u8,
    pub(super) mask: u32,
}

impl Load {
    /// The load of a test, and how far the test's bounds are to be shifted to the left.
    pub(crate) fn new(test: &Test) -> (Load, u32) {
        let needs = (test.needs() - test.offset) as u8;
        let load = Load { offset: test.offset, base: test.base, needs, mask: test.mask };
        // Link offsets are relative to two bytes before the header.
        match (test.base, test.offset) {
            (Base::Link, 0) => {
                (Load { needs: needs.saturating_sub(2), mask: test.mask << 16, ..load }, 16)
            }
            (Base::Link, offset) => (Load { offset: offset - 2, ..load }, 0),
            _ => (load, 0),
        }
    }

    /// The bytes that the header must have.
    pub(super) fn length(&self) -> u16 {
        self.offset + u16::from(self.needs)
    }

    /// The masked word of a packet that has all four bytes.
    #[inline(always)]
    pub(super) fn load<W: HeaderWords>(&self, words: &W) -> u32 {
        words.word(self.base, self.offset).unwrap_or_default() & self.mask
    }

    /// The masked word, with zeros for bytes beyond the packet's end.
    pub(super) fn load_padded<W: HeaderWords>(&self, words: &W) -> u32 {
        let header = words.header(self.base).get(usize::from(self.offset)..);
        let mut word = [0; 4];
        word.iter_mut().zip(header.unwrap_or_default()).for_each(|(to, from)| *to = *from);
        u32::from_be_bytes(word) & self.mask
    }
}

/// An instruction.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Tests whether the word minus `lo` is at most `span`.
    Test { load: Load, lo: u32, span: u32, yes: Target, no: Target, short: Target },
    /// Looks the word up in a hash table. Packets too short for it go to `short`, an equivalent
    /// chain of tests.
    Hash { load: Load, slots: HashDispatch, short: Target },
    /// Looks up the interval that contains the word.
    Intervals { load: Load, intervals: IntervalDispatch, short: Target },
    /// Compares words that all must have their values.
    Comparisons { comparisons: Comparisons, short: Target },
}

/// The executable program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytecode {
    ops: Box<[Op]>,
    start: Target,
    /// The first instruction, if it has one of the forms that most programs end with.
    first: Option<First>,
    /// The only test, if the program is a single comparison.
    single_test: Option<SingleTest>,
}

/// Instructions of a test, as callgrind counts them.
pub(crate) const TEST: u32 = 40;
/// Instructions of comparisons, and of each window of them.
const LIST: u32 = 10;
const WINDOW: u32 = 12;
/// Instructions of a hash lookup.
const HASH: u32 = 45;
/// Instructions of every packet.
pub(crate) const BASE: u32 = 70;
/// Instructions that a processor could execute during a cache miss.
const CACHE_MISS: u32 = 100;
/// Bytes that fit into the cache.
const CACHE: usize = 1 << 20;
/// Instructions of each step of a binary search.
const SEARCH_STEP: u32 = 8;

/// Stands for no output: the packet is dropped.
pub(crate) const NO_OUTPUT: u8 = u8::MAX;

/// The output of a final target.
#[inline(always)]
pub(crate) fn output(end: Target) -> u8 {
    if end == DROP { NO_OUTPUT } else { end as u8 }
}

impl Bytecode {
    pub(crate) fn new(graph: &Graph) -> Self {
        let instructions = Instructions::new(graph);
        let mut ops: Vec<Op> = graph
            .nodes
            .iter()
            .map(|node| {
                let (load, shift) = Load::new(&node.test);
                let (lo, hi) = (node.test.lo << shift, node.test.hi << shift);
                let (yes, no) = (instructions.entry(node.yes), instructions.entry(node.no));
                let short = if node.short_yes { yes } else { no };
                Op::Test { load, lo, span: hi - lo, yes, no, short }
            })
            .collect();
        ops.extend(instructions.ops());
        let start = instructions.entry(graph.start);
        let first = ops.get(start as usize).and_then(First::new);
        let single_test = ops.get(start as usize).and_then(SingleTest::new);
        Bytecode { ops: ops.into_boxed_slice(), start, first, single_test }
    }

    /// The output of a packet, if the program is a single test and the packet is long enough.
    #[inline(always)]
    pub(crate) fn run_single<W: HeaderWords>(&self, words: &W) -> Option<u8> {
        self.single_test.as_ref()?.find(words)
    }

    /// Whether the program is a single test.
    pub(crate) fn is_single(&self) -> bool {
        self.single_test.is_some()
    }

    /// The first instruction, if it is a lookup of a word of the network header.
    pub(crate) fn network_lookup(&self) -> Option<NetworkLookup> {
        self.ops.get(self.start as usize).and_then(NetworkLookup::new)
    }

    /// The output of a packet that has come to a target.
    #[inline(always)]
    pub(crate) fn run_on<W: HeaderWords>(&self, words: &W, at: Target) -> u8 {
        output(self.run_from(words, at))
    }

    /// The output of a packet.
    // With its parts a part of the caller's loop: a call would cost more than most programs.
    #[inline(always)]
    pub(crate) fn run<W: HeaderWords>(&self, words: &W) -> u8 {
        output(self.end(words))
    }

    /// The final target of a packet.
    #[inline(always)]
    pub(crate) fn end<W: HeaderWords>(&self, words: &W) -> Target {
        let at = self.first.as_ref().and_then(|first| first.find(words)).unwrap_or(self.start);
        self.run_from(words, at)
    }

    /// The memory latency of each instruction, in processor instructions.
    pub(crate) fn memory_latency(&self) -> u32 {
        if self.bytes() > CACHE { CACHE_MISS } else { 0 }
    }

    /// The approximate cost of a packet in processor instructions, if each step has this latency.
    /// The packet must have all words that are read.
    pub(crate) fn cost<W: HeaderWords>(&self, words: &W, latency: u32) -> u32 {
        let (mut at, mut cost) = (self.start, BASE);
        while let Some(op) = self.ops.get(at as usize) {
            cost += latency;
            (at, cost) = match op {
                Op::Test { load, lo, span, yes, no, .. } => {
                    let passes = load.load(words).wrapping_sub(*lo) <= *span;
                    (if passes { *yes } else { *no }, cost + TEST)
                }
                Op::Hash { load, slots, .. } => (slots.find(load.load(words)), cost + HASH),
                Op::Intervals { load, intervals, .. } => (
                    intervals.find(load.load(words)),
                    cost + HASH + SEARCH_STEP * intervals.search_steps(),
                ),
                Op::Comparisons { comparisons, short } => (
                    comparisons.find(words).unwrap_or(*short),
                    cost + LIST + WINDOW * comparisons.len() as u32,
                ),
            };
        }
        cost
    }

    /// The memory of the instructions, in bytes.
    fn bytes(&self) -> usize {
        let more = self.ops.iter().map(|op| match op {
            Op::Test { .. } => 0,
            Op::Hash { slots, .. } => slots.bytes(),
            Op::Intervals { intervals, .. } => intervals.bytes(),
            Op::Comparisons { comparisons, .. } => comparisons.bytes(),
        });
        size_of_val(&self.ops[..]) + more.sum::<usize>()
    }

    /// Runs from instruction `at` to a final target.
    #[inline(always)]
    fn run_from<W: HeaderWords>(&self, words: &W, mut at: Target) -> Target {
        while let Some(op) = self.ops.get(at as usize) {
            at = match op {
                &Op::Test { load, lo, span, yes, no, short } => {
                    match words.word(load.base, load.offset).or_else(|| partial(words, load)) {
                        Some(word) if (word & load.mask).wrapping_sub(lo) <= span => yes,
                        Some(_) => no,
                        None => short,
                    }
                }
                Op::Hash { load, slots, short } => match words.word(load.base, load.offset) {
                    Some(word) => slots.find(word & load.mask),
                    None => *short,
                },
                Op::Intervals { load, intervals, short } => {
                    match words.word(load.base, load.offset) {
                        Some(word) => intervals.find(word & load.mask),
                        None => *short,
                    }
                }
                Op::Comparisons { comparisons, short } => comparisons.find(words).unwrap_or(*short),
            };
        }
        at
    }
}

/// The word at the very end of a packet, which lacks only bytes outside the mask.
#[cold]
fn partial<W: HeaderWords>(words: &W, load: Load) -> Option<u32> {
    let bytes = words.header(load.base).get(usize::from(load.offset)..)?;
    if bytes.len() < usize::from(load.needs) {
        return None;
    }
    let mut word = [0; 4];
    let there = bytes.len().min(4);
    word[..there].copy_from_slice(&bytes[..there]);
    Some(u32::from_be_bytes(word))
}
