//! Programs of few tests, run on the packets of a burst together.
//!
//! Sixteen packets at a time go through all tests in their order. A lane of a vector holds the step that its
//! packet has come to; steps that it does not come to leave it alone. So no branch of the processor depends
//! on a packet: it neither guesses nor waits, however the packets of a burst differ.

use super::bytecode::Load;
use super::dispatch::{HashDispatch, RunCollector};
use super::graph::{DROP, Graph, OUT, Target};
use super::header_words::HeaderWords;
use super::pattern::Base;
use std::array;
use std::collections::BTreeMap;
use wide::{CmpEq, CmpGt, i8x16, i16x8, i16x16, i32x8};

/// Packets in a vector of states.
const LANES: usize = 16;
/// Words in a vector.
const WORDS: usize = 8;
/// Packets whose words are loaded before the first vector is: what a vector loads was stored long before then.
const CHUNK: usize = 64;
/// The most words that are loaded of a packet.
const MOST_WORDS: usize = 4;
/// Of fewer packets, each goes by the tests.
pub(crate) const FEWEST: usize = 4;
/// The most values that are compared one by one; more are looked up.
const MOST_VALUES: usize = 16;
/// The most instructions of a packet, by `cost`.
const MOST_COST: usize = 56;

/// A state: the number of the step that a packet has come to, or [`END`] with its output, or [`DROPPED`].
type State = i8;

/// In a state: the way of the packet is at its end.
const END: u8 = 0x80;
/// The state of a packet that has no output: all bits, as the number that stands for no output.
const DROPPED: u8 = u8::MAX;

/// The place of a word: the header, and the offset there.
type WordPlace = (Base, u16);

/// The steps of a program, and the words that they read.
#[derive(Clone, Debug)]
pub(crate) struct VectorProgram {
    /// At least one.
    words: Vec<WordPlace>,
    /// At least one.
    steps: Vec<Step>,
}

/// A step: what it reads, and where packets go.
#[derive(Clone, Debug)]
struct Step {
    /// The number of the word.
    word: usize,
    /// In the byte order of memory, as values.
    mask: i32,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// Whether the masked word is the value.
    Equality { value: i32, yes: State, no: State },
    /// Whether the masked word, as a number, minus `lo` is at most `span`.
    Range { lo: u32, span: u32, yes: State, no: State },
    /// Which of the values it is; each with where it leads, xor `other`.
    Values { values: Vec<(i32, State)>, other: State },
    /// The same of many values.
    Lookup(HashDispatch),
}

impl Form {
    /// That of these values, each with where it leads, where others lead to `other`.
    fn of_values(mut values: Vec<(i32, State)>, other: State) -> Form {
        if values.len() <= MOST_VALUES {
            values.iter_mut().for_each(|(_, leads)| *leads ^= other);
            return Form::Values { values, other };
        }
        let target = |state: State| Target::from(state.cast_unsigned());
        let range = |&(value, leads): &(i32, State)| {
            (value.cast_unsigned(), value.cast_unsigned(), target(leads))
        };
        let ranges: Vec<_> = values.iter().map(range).collect();
        Form::Lookup(HashDispatch::new(&ranges, target(other)))
    }
}

impl Step {
    /// Where the packets of these words go.
    #[inline(always)]
    fn next(&self, words: [i32x8; 2]) -> i8x16 {
        let words = words.map(|words| words & i32x8::splat(self.mask));
        match &self.form {
            &Form::Equality { value, yes, no } => choose(are_equal(words, value), yes, no),
            &Form::Range { lo, span, yes, no } => choose(are_beyond(words, lo, span), no, yes),
            Form::Values { values, other } => {
                let mut next = i8x16::splat(*other);
                for &(value, difference) in values {
                    next ^= are_equal(words, value) & i8x16::splat(difference);
                }
                next
            }
            Form::Lookup(table) => i8x16::new(array::from_fn(|lane| {
                let word = words[lane / WORDS].as_array_ref()[lane % WORDS];
                table.find(word.cast_unsigned()) as State
            })),
        }
    }

    /// Instructions of a packet.
    fn cost(&self) -> usize {
        match &self.form {
            Form::Equality { .. } => 2,
            Form::Range { .. } => 4,
            Form::Values { values, .. } => 2 + values.len(),
            Form::Lookup(_) => 20,
        }
    }
}

/// In each lane all bits if the word is the value, else none.
#[inline(always)]
fn are_equal(words: [i32x8; 2], value: i32) -> i8x16 {
    let value = i32x8::splat(value);
    narrow(words.map(|words| words.cmp_eq(value)))
}

/// In each lane all bits if the word, as a number, is less than `lo` or more than `span` above it.
#[inline(always)]
fn are_beyond(words: [i32x8; 2], lo: u32, span: u32) -> i8x16 {
    // Signed comparisons of numbers whose sign bits are flipped are unsigned ones.
    let signed = |number: u32| (number ^ 1 << 31).cast_signed();
    let span = i32x8::splat(signed(span));
    narrow(words.map(|words| {
        let distance = |word: i32| signed(u32::from_be(word.cast_unsigned()).wrapping_sub(lo));
        i32x8::from(words.to_array().map(distance)).cmp_gt(span)
    }))
}

/// The lanes as bytes, where each has all bits or none.
#[inline(always)]
fn narrow(lanes: [i32x8; 2]) -> i8x16 {
    let lanes: i16x16 = bytemuck::cast(lanes.map(i16x8::from_i32x8_saturate));
    i8x16::from_i16x16_saturate(lanes)
}

/// In each lane `yes`, where `mask` is set, or `no`.
#[inline(always)]
fn choose(mask: i8x16, yes: State, no: State) -> i8x16 {
    i8x16::splat(no) ^ (mask & i8x16::splat(yes ^ no))
}

impl VectorProgram {
    /// The program of a graph; `None` if it has no tests, or too many tests, words or outputs.
    pub(crate) fn new(graph: &Graph) -> Option<VectorProgram> {
        if graph.nodes.is_empty() {
            return None;
        }
        let mut builder = Builder { graph, runs: RunCollector::new(graph), words: Vec::new() };
        let program = builder.program()?;
        (program.cost() <= MOST_COST).then_some(program)
    }

    /// Whether it reads nothing but network headers and what follows at fixed places.
    pub(crate) fn is_of_network(&self) -> bool {
        self.words.iter().all(|(base, _)| *base == Base::Network)
    }

    /// Instructions of a packet.
    fn cost(&self) -> usize {
        let (fixed, word) = (6, 7);
        fixed + word * self.words.len() + self.steps.iter().map(Step::cost).sum::<usize>()
    }

    /// The outputs of packets, of which there are as many as `outputs`; `alone` has that of one that is `None`
    /// or lacks a word of those that are read.
    #[inline(always)]
    pub(crate) fn run<W: HeaderWords>(
        &self,
        packets: impl Iterator<Item = Option<W>>,
        outputs: &mut [u8],
        alone: impl FnMut(Option<W>) -> u8,
    ) {
        match self.words.len() {
            0 | 1 => self.run_on::<1, W>(packets, outputs, alone),
            2 => self.run_on::<2, W>(packets, outputs, alone),
            _ => self.run_on::<MOST_WORDS, W>(packets, outputs, alone),
        }
    }

    /// The same with `N` words of each packet, the last of them again if there are fewer.
    #[inline(always)]
    fn run_on<const N: usize, W: HeaderWords>(
        &self,
        mut packets: impl Iterator<Item = Option<W>>,
        outputs: &mut [u8],
        mut alone: impl FnMut(Option<W>) -> u8,
    ) {
        let loads: [WordPlace; N] = array::from_fn(|n| self.words[n.min(self.words.len() - 1)]);
        for outputs in outputs.chunks_mut(CHUNK) {
            let mut columns = [[0; CHUNK]; N];
            let (mut rest, mut alone_outputs) = (0u64, [0; CHUNK]);
            for place in 0..outputs.len().min(CHUNK) {
                let Some(packet) = packets.next() else { break };
                let words = packet.as_ref().and_then(|packet| load_all(packet, &loads));
                match words {
                    Some(words) => {
                        for (column, word) in columns.iter_mut().zip(words) {
                            column[place] = word;
                        }
                    }
                    None => {
                        alone_outputs[place] = alone(packet);
                        rest |= 1 << place;
                    }
                }
            }
            self.run_columns(&columns, outputs);
            while rest != 0 {
                let place = rest.trailing_zeros() as usize;
                outputs[place] = alone_outputs[place];
                rest &= rest - 1;
            }
        }
    }

    /// The outputs of packets, of which there are as many as `outputs`, by words that `load` writes as
    /// [`Program::outputs_of_words`](super::Program::outputs_of_words) has it; `false`, and nothing is done, if it
    /// answers `false`.
    #[inline(always)]
    pub(crate) fn run_words(
        &self,
        outputs: &mut [u8],
        load: impl Fn(Base, usize, usize, &mut [u32]) -> bool,
    ) -> bool {
        match self.words.len() {
            0 | 1 => self.run_words_on::<1>(outputs, load),
            2 => self.run_words_on::<2>(outputs, load),
            _ => self.run_words_on::<MOST_WORDS>(outputs, load),
        }
    }

    /// The same with `N` columns for words, or fewer.
    #[inline(always)]
    fn run_words_on<const N: usize>(
        &self,
        outputs: &mut [u8],
        load: impl Fn(Base, usize, usize, &mut [u32]) -> bool,
    ) -> bool {
        // Before any is loaded: a program may read what packets lack, or have in different places, last.
        let has = |&(base, offset): &WordPlace| load(base, offset.into(), 0, &mut []);
        if !self.words.iter().all(has) {
            return false;
        }
        let mut first = 0;
        for outputs in outputs.chunks_mut(CHUNK) {
            let mut columns = [[0; CHUNK]; N];
            for (column, (base, offset)) in columns.iter_mut().zip(&self.words) {
                let words = bytemuck::cast_slice_mut(&mut column[..outputs.len()]);
                if !load(*base, usize::from(*offset), first, words) {
                    return false;
                }
            }
            self.run_columns(&columns, outputs);
            first += outputs.len();
        }
        true
    }

    /// The outputs of packets by their words, which lie in a column each.
    #[inline(never)]
    fn run_columns<const N: usize>(&self, columns: &[[i32; CHUNK]; N], outputs: &mut [u8]) {
        let Some((first, steps)) = self.steps.split_first() else { return };
        let columns = columns.each_ref().map(|column| column.as_chunks::<WORDS>().0);
        for (group, outputs) in outputs.chunks_mut(LANES).enumerate() {
            let words = |step: &Step| {
                let column = columns.get(step.word).unwrap_or(&columns[0]);
                [column[2 * group], column[2 * group + 1]].map(i32x8::from)
            };
            let mut at = first.next(words(first));
            for (number, step) in (1..).zip(steps) {
                let here = at.cmp_eq(i8x16::splat(number));
                at ^= here & (step.next(words(step)) ^ at);
            }
            let is_dropped = at.cmp_eq(i8x16::splat(DROPPED.cast_signed()));
            let ends = (at ^ i8x16::splat(END.cast_signed())) | is_dropped;
            let ends = ends.to_array().map(i8::cast_unsigned);
            match <&mut [u8; LANES]>::try_from(&mut *outputs) {
                Ok(outputs) => *outputs = ends,
                Err(_) => outputs.copy_from_slice(&ends[..outputs.len()]),
            }
        }
    }
}

/// The words of a packet, in the byte order of memory, if it has all of them.
#[inline(always)]
fn load_all<W: HeaderWords, const N: usize>(
    packet: &W,
    loads: &[WordPlace; N],
) -> Option<[i32; N]> {
    let mut words = [0; N];
    for (word, (base, offset)) in words.iter_mut().zip(loads) {
        *word = packet.word(*base, *offset)?.to_be().cast_signed();
    }
    Some(words)
}

/// Makes the program of a graph.
struct Builder<'a> {
    graph: &'a Graph,
    runs: RunCollector<'a>,
    words: Vec<WordPlace>,
}

impl Builder<'_> {
    fn program(&mut self) -> Option<VectorProgram> {
        // Branches lead forward: in the order of their numbers, all that lead to a node are known before it.
        let mut tests = BTreeMap::new();
        let mut left: Vec<Target> = vec![self.graph.start];
        while let Some(node) = left.pop() {
            if node >= OUT || tests.contains_key(&node) {
                // A state has room for so many outputs.
                if node != DROP && node >= OUT + u32::from(DROPPED & !END) {
                    return None;
                }
                continue;
            }
            let members = self.run_of(node);
            let last = *members.last()?;
            left.extend(members.iter().map(|&member| self.graph.nodes[member as usize].yes));
            left.push(self.graph.nodes[last as usize].no);
            tests.insert(node, members);
            if tests.len() > MOST_COST {
                return None;
            }
        }
        if tests.is_empty() {
            return None;
        }
        let numbers: BTreeMap<Target, u8> = tests.keys().copied().zip(0..).collect();
        let state = |target: Target| match numbers.get(&target) {
            Some(&number) => number.cast_signed(),
            None if target == DROP => DROPPED.cast_signed(),
            None => (END | target as u8).cast_signed(),
        };
        let steps: Option<Vec<Step>> =
            tests.values().map(|members| self.step(members, state)).collect();
        Some(VectorProgram { steps: steps?, words: std::mem::take(&mut self.words) })
    }

    /// A node, and those along no branches that compare the same word with other values.
    fn run_of(&mut self, node: Target) -> Vec<Target> {
        let is_equality = self.graph.nodes[node as usize].test.is_equality();
        let members = if is_equality { self.runs.equalities(node) } else { Vec::new() };
        if members.is_empty() { vec![node] } else { members }
    }

    /// The step for tests of one word; `None` if there are too many words.
    fn step(&mut self, members: &[Target], state: impl Fn(Target) -> State) -> Option<Step> {
        let node = |member: Target| &self.graph.nodes[member as usize];
        let (first, last) = (node(*members.first()?), node(*members.last()?));
        let (load, shift) = Load::new(&first.test);
        let in_memory = |word: u32| (word << shift).to_be().cast_signed();
        let (yes, no) = (state(first.yes), state(last.no));
        let (lo, hi) = (first.test.lo << shift, first.test.hi << shift);
        let form = match members.len() {
            1 if lo == hi => Form::Equality { value: in_memory(first.test.lo), yes, no },
            1 => Form::Range { lo, span: hi - lo, yes, no },
            _ => {
                let mut values: Vec<(i32, State)> = Vec::with_capacity(members.len());
                for node in members.iter().map(|&member| node(member)) {
                    let value = in_memory(node.test.lo);
                    // Of equal values, the first counts.
                    if !values.iter().any(|known| known.0 == value) {
                        values.push((value, state(node.yes)));
                    }
                }
                Form::of_values(values, no)
            }
        };
        let place = (load.base, load.offset);
        let known = self.words.iter().position(|known| *known == place);
        let word = known.unwrap_or(self.words.len());
        if known.is_none() {
            self.words.push(place);
        }
        let mask = load.mask.to_be().cast_signed();
        (self.words.len() <= MOST_WORDS).then_some(Step { word, mask, form })
    }
}
