//! The program as packets meet it: tests, and dispatches that stand for whole runs of tests.

use super::dispatch::{Intervals, Runs, Slots};
use super::graph::{DROP, Graph, OUT, Target};
use super::pattern::{Base, Test};

/// The masked word at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Counted from the header `base`.
    pub(super) offset: u16,
    pub(super) base: Base,
    /// How many of the four bytes matter.
    needs: u8,
    pub(super) mask: u32,
}

impl Load {
    /// The word of a test and how many bits its bounds are to be shifted to the left.
    pub(crate) fn new(test: &Test) -> (Load, u32) {
        let needs = (test.needs() - test.offset) as u8;
        let load = Load { offset: test.offset, base: test.base, needs, mask: test.mask };
        // Link offsets count from two bytes before the header.
        match (test.base, test.offset) {
            (Base::Link, 0) => {
                (Load { needs: needs.saturating_sub(2), mask: test.mask << 16, ..load }, 16)
            }
            (Base::Link, offset) => (Load { offset: offset - 2, ..load }, 0),
            _ => (load, 0),
        }
    }

    /// Bytes that the header must have.
    pub(super) fn length(&self) -> u16 {
        self.offset + u16::from(self.needs)
    }

    /// The masked word, of a packet that has all of it.
    #[inline(always)]
    pub(super) fn whole<W: Words>(&self, words: &W) -> u32 {
        words.word(self.base, self.offset).unwrap_or_default() & self.mask
    }

    /// The masked word, in which bytes beyond the packet's end are zero.
    pub(super) fn padded<W: Words>(&self, words: &W) -> u32 {
        let header = words.header(self.base).get(usize::from(self.offset)..);
        let mut word = [0; 4];
        word.iter_mut().zip(header.unwrap_or_default()).for_each(|(to, from)| *to = *from);
        u32::from_be_bytes(word) & self.mask
    }
}

/// One step.
#[derive(Clone, Debug)]
enum Op {
    /// Whether the word minus `lo` is at most `span`.
    Test { load: Load, lo: u32, span: u32, yes: Target, no: Target, short: Target },
    /// Where the table leads for the word; words too short go to `short`, an equal chain of tests.
    Hash { load: Load, slots: Slots, short: Target },
    /// Where the interval leads that the word is in.
    Intervals { load: Load, intervals: Intervals, short: Target },
}

/// The whole program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flat {
    ops: Box<[Op]>,
    start: Target,
    /// The first dispatch, if it knows few words: most programs end there.
    first: Option<Few>,
    /// The only test, if there is but one.
    only: Option<Only>,
}

/// A program of one comparison. What it compares is kept as words lie in
/// memory, so that no word need be turned around.
#[derive(Clone, Copy, Debug)]
struct Only {
    base: Base,
    offset: u16,
    mask: u32,
    value: u32,
    /// Outputs, or [`NO_OUTPUT`].
    yes: u8,
    no: u8,
}

impl Only {
    fn new(op: &Op) -> Option<Only> {
        match *op {
            Op::Test { load, lo, span: 0, yes, no, .. } if yes >= OUT && no >= OUT => Some(Only {
                base: load.base,
                offset: load.offset,
                mask: load.mask.to_be(),
                value: lo.to_be(),
                yes: output(yes),
                no: output(no),
            }),
            _ => None,
        }
    }

    /// Where it leads, if the packet is long enough for a whole word.
    #[inline(always)]
    fn find<W: Words>(&self, words: &W) -> Option<u8> {
        let word = words.word(self.base, self.offset)?.to_be();
        Some(if word & self.mask == self.value { self.yes } else { self.no })
    }
}

/// Instructions of a test, as callgrind counts them.
pub(crate) const TEST: u32 = 40;
/// Those of a lookup by hash.
const HASH: u32 = 45;
/// Those of every packet.
pub(crate) const BASE: u32 = 70;
/// As many as a processor could do while it waits for a step that is not in its cache.
const WAIT: u32 = 100;
/// Bytes that are in the cache.
const CACHE: usize = 1 << 20;
/// Those of each halving of a list of intervals.
const HALVING: u32 = 8;

/// Stands for no output: the packet is dropped.
pub(crate) const NO_OUTPUT: u8 = u8::MAX;

/// The output that an end stands for.
#[inline(always)]
fn output(end: Target) -> u8 {
    if end == DROP { NO_OUTPUT } else { end as u8 }
}

/// How many words [`Few`] compares with.
const FEW: usize = 4;

/// A dispatch small enough to compare with all its words and take no branch.
#[derive(Clone, Copy, Debug)]
struct Few {
    load: Load,
    words: [u32; FEW],
    targets: [Target; FEW],
    default: Target,
}

impl Few {
    fn new(op: &Op) -> Option<Few> {
        let Op::Hash { load, slots, .. } = op else { return None };
        let mut few =
            Few { load: *load, words: [0; FEW], targets: [0; FEW], default: slots.default() };
        // Unused places repeat the last word.
        let mut known = slots.known().peekable();
        for i in 0..FEW {
            (few.words[i], few.targets[i]) = match known.next() {
                Some(known) => known,
                None => (*few.words.get(i.checked_sub(1)?)?, few.targets[i - 1]),
            };
        }
        known.peek().is_none().then_some(few)
    }

    /// Where to go on with a packet, if it has the word.
    #[inline(always)]
    fn find<W: Words>(&self, words: &W) -> Option<Target> {
        let word = words.word(self.load.base, self.load.offset)? & self.load.mask;
        let mut target = self.default;
        for i in 0..FEW {
            target = if word == self.words[i] { self.targets[i] } else { target };
        }
        Some(target)
    }
}

/// Gives the words of a packet's headers.
pub(crate) trait Words {
    /// The header and what follows it.
    fn header(&self, base: Base) -> &[u8];

    /// The word at `offset` of the header, if all four bytes are there.
    fn word(&self, base: Base, offset: u16) -> Option<u32>;

    /// The eight bytes at `offset`, if all are there; `bytes` are those of the header.
    #[inline(always)]
    fn long(&self, bytes: &[u8], _: Base, offset: u16) -> Option<u64> {
        let bytes = bytes.get(usize::from(offset)..)?;
        bytes.first_chunk().map(|b| u64::from_be_bytes(*b))
    }

    /// As [`Words::header`], where every packet comes.
    fn bytes(&self, base: Base) -> &[u8];

    /// Whether these bytes, those of a header, are so many.
    #[inline(always)]
    fn are(&self, bytes: &[u8], length: usize) -> bool {
        bytes.len() >= length
    }

    /// How many bytes there are from the header on.
    fn length(&self, base: Base) -> usize;
}

/// A packet as `Classifier` sees it.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Words for Bytes<'_> {
    #[inline(always)]
    fn header(&self, _: Base) -> &[u8] {
        self.0
    }

    #[inline(always)]
    fn word(&self, _: Base, offset: u16) -> Option<u32> {
        let from = usize::from(offset);
        let word = self.0.get(from..from + 4)?;
        word.first_chunk().map(|b| u32::from_be_bytes(*b))
    }

    #[inline(always)]
    fn bytes(&self, _: Base) -> &[u8] {
        self.0
    }

    #[inline(always)]
    fn length(&self, _: Base) -> usize {
        self.0.len()
    }
}

/// A packet as the IP languages see it.
pub(crate) struct Headers<'a> {
    link: &'a [u8],
    network: &'a [u8],
    transport: usize,
}

impl<'a> Headers<'a> {
    #[inline(always)]
    pub(crate) fn new(link: &'a [u8], network: &'a [u8]) -> Self {
        // The header length of RFC 791 counts words.
        let transport = network.first().map_or(0, |b| usize::from(b & 0x0F) * 4);
        Headers { link, network, transport }
    }
}

impl Words for Headers<'_> {
    #[cold]
    fn header(&self, base: Base) -> &[u8] {
        self.bytes(base)
    }

    #[inline(always)]
    fn word(&self, base: Base, offset: u16) -> Option<u32> {
        if base == Base::Link {
            return self
                .link
                .get(usize::from(offset)..)?
                .first_chunk()
                .map(|b| u32::from_be_bytes(*b));
        }
        let from = if base == Base::Transport { self.transport } else { 0 };
        let bytes = self.network.get(from + usize::from(offset)..)?;
        bytes.first_chunk().map(|b| u32::from_be_bytes(*b))
    }

    #[inline(always)]
    fn bytes(&self, base: Base) -> &[u8] {
        match base {
            Base::Link => self.link,
            Base::Transport => self.network.get(self.transport..).unwrap_or(&[]),
            Base::Network | Base::Packet => self.network,
        }
    }

    #[inline(always)]
    fn length(&self, base: Base) -> usize {
        match base {
            Base::Link => self.link.len(),
            Base::Transport => self.network.len().saturating_sub(self.transport),
            Base::Network | Base::Packet => self.network.len(),
        }
    }
}

impl Flat {
    pub(crate) fn new(graph: &Graph) -> Self {
        let plan = Plan::new(graph);
        let mut ops: Vec<Op> = graph
            .nodes
            .iter()
            .map(|node| {
                let (load, shift) = Load::new(&node.test);
                let (lo, hi) = (node.test.lo << shift, node.test.hi << shift);
                let (yes, no) = (plan.entry(node.yes), plan.entry(node.no));
                let short = if node.short_yes { yes } else { no };
                Op::Test { load, lo, span: hi - lo, yes, no, short }
            })
            .collect();
        ops.extend(plan.dispatches(graph));
        let start = plan.entry(graph.start);
        let first = ops.get(start as usize).and_then(Few::new);
        let only = ops.get(start as usize).and_then(Only::new);
        Flat { ops: ops.into_boxed_slice(), start, first, only }
    }

    /// The output of a packet, if there is but one test, and the packet long enough for it.
    #[inline(always)]
    pub(crate) fn only<W: Words>(&self, words: &W) -> Option<u8> {
        self.only.as_ref()?.find(words)
    }

    /// The output of a packet.
    #[inline]
    pub(crate) fn run<W: Words>(&self, words: &W) -> u8 {
        output(self.end(words))
    }

    /// The end that a packet comes to.
    #[inline]
    pub(crate) fn end<W: Words>(&self, words: &W) -> Target {
        let at = self.first.as_ref().and_then(|first| first.find(words)).unwrap_or(self.start);
        if at >= OUT { at } else { self.go_on(words, at) }
    }

    /// What each step waits for memory, in instructions.
    pub(crate) fn wait(&self) -> u32 {
        if self.bytes() > CACHE { WAIT } else { 0 }
    }

    /// How many instructions a packet takes, about, if each step waits so long; it has all
    /// words that are asked for.
    pub(crate) fn cost<W: Words>(&self, words: &W, wait: u32) -> u32 {
        let (mut at, mut cost) = (self.start, BASE);
        while let Some(op) = self.ops.get(at as usize) {
            cost += wait;
            (at, cost) = match op {
                Op::Test { load, lo, span, yes, no, .. } => {
                    let passes = load.whole(words).wrapping_sub(*lo) <= *span;
                    (if passes { *yes } else { *no }, cost + TEST)
                }
                Op::Hash { load, slots, .. } => (slots.find(load.whole(words)), cost + HASH),
                Op::Intervals { load, intervals, .. } => (
                    intervals.find(load.whole(words)),
                    cost + HASH + HALVING * intervals.halvings(),
                ),
            };
        }
        cost
    }

    /// Bytes of memory of the steps.
    fn bytes(&self) -> usize {
        let more = self.ops.iter().map(|op| match op {
            Op::Test { .. } => 0,
            Op::Hash { slots, .. } => slots.bytes(),
            Op::Intervals { intervals, .. } => intervals.bytes(),
        });
        size_of_val(&self.ops[..]) + more.sum::<usize>()
    }

    /// Runs from `at` to an end.
    fn go_on<W: Words>(&self, words: &W, mut at: Target) -> Target {
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
            };
        }
        at
    }
}

/// The word at the very end of a packet, whose last bytes do not matter and are not there.
#[cold]
fn partial<W: Words>(words: &W, load: Load) -> Option<u32> {
    let bytes = words.header(load.base).get(usize::from(load.offset)..)?;
    if bytes.len() < usize::from(load.needs) {
        return None;
    }
    let mut word = [0; 4];
    let there = bytes.len().min(4);
    word[..there].copy_from_slice(&bytes[..there]);
    Some(u32::from_be_bytes(word))
}

/// Which runs of tests become dispatches, and where those stand after the tests.
struct Plan {
    /// For each node, the dispatch that begins with it.
    dispatch: Vec<Target>,
    runs: Vec<Run>,
    nodes: Target,
}

/// A run of nodes along no branches, by their number.
struct Run {
    members: Vec<Target>,
    hash: bool,
}

impl Plan {
    fn new(graph: &Graph) -> Self {
        let nodes = graph.nodes.len() as Target;
        let mut plan = Plan { dispatch: vec![DROP; graph.nodes.len()], runs: Vec::new(), nodes };
        let mut runs = Runs::new(graph);
        let mut inside = vec![false; graph.nodes.len()];
        for i in 0..nodes {
            if inside[i as usize] {
                continue;
            }
            let equalities = runs.equalities(i);
            let intervals = runs.intervals(i);
            let hash = equalities.len() * 2 >= intervals.len();
            let members = if hash { equalities } else { intervals };
            if members.len() < if hash { 2 } else { 4 } {
                continue;
            }
            for &member in &members[1..] {
                inside[member as usize] |= runs.entries[member as usize] == 1;
            }
            plan.dispatch[i as usize] = nodes + plan.runs.len() as Target;
            plan.runs.push(Run { members, hash });
        }
        plan
    }

    /// Where a branch to `target` leads in the flat program.
    fn entry(&self, target: Target) -> Target {
        match self.dispatch.get(target as usize) {
            Some(&dispatch) if dispatch != DROP => dispatch,
            _ => target,
        }
    }

    fn dispatches<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = Op> + 'a {
        debug_assert_eq!(self.nodes as usize, graph.nodes.len());
        self.runs.iter().map(|run| {
            let first = run.members[0];
            let mask = run.members.iter().fold(0, |m, &i| m | graph.nodes[i as usize].test.mask);
            let test = Test { mask, ..graph.nodes[first as usize].test };
            let (load, shift) = Load::new(&test);
            let last = graph.nodes[run.members[run.members.len() - 1] as usize];
            let default = self.entry(last.no);
            let ranges: Vec<(u32, u32, Target)> = run
                .members
                .iter()
                .map(|&i| {
                    let node = &graph.nodes[i as usize];
                    // Bits below the test's own mask are free.
                    let hi = node.test.hi | (mask & !node.test.mask);
                    (node.test.lo << shift, hi << shift, self.entry(node.yes))
                })
                .collect();
            if run.hash {
                Op::Hash { load, slots: Slots::new(&ranges, default), short: first }
            } else {
                Op::Intervals { load, intervals: Intervals::new(&ranges, default), short: first }
            }
        })
    }
}
