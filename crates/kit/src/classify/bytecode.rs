//! The executable form of a program: tests, and dispatches that replace whole runs of tests.

use super::dispatch::{HashDispatch, IntervalDispatch, RunCollector};
use super::graph::{DROP, Graph, OUT, Target};
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
enum Op {
    /// Tests whether the word minus `lo` is at most `span`.
    Test { load: Load, lo: u32, span: u32, yes: Target, no: Target, short: Target },
    /// Looks the word up in a hash table. Packets too short for it go to `short`, an equivalent
    /// chain of tests.
    Hash { load: Load, slots: HashDispatch, short: Target },
    /// Looks up the interval that contains the word.
    Intervals { load: Load, intervals: IntervalDispatch, short: Target },
}

/// The executable program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytecode {
    ops: Box<[Op]>,
    start: Target,
    /// The first instruction, if it is a dispatch on few words: most programs end with it.
    first: Option<SmallDispatch>,
    /// The only test, if the program is a single comparison.
    single_test: Option<SingleTest>,
}

/// A lookup of a word of the network header, without a look at what else instructions can be.
#[derive(Clone, Debug)]
pub(crate) struct NetworkLookup {
    offset: usize,
    mask: u32,
    slots: HashDispatch,
}

impl NetworkLookup {
    fn new(op: &Op) -> Option<NetworkLookup> {
        let (load, slots) = match op {
            Op::Hash { load, slots, .. } => (load, slots.clone()),
            &Op::Test { ref load, lo, span: 0, yes, no, .. } => {
                (load, HashDispatch::new(&[(lo, lo, yes)], no))
            }
            _ => return None,
        };
        let offset = usize::from(load.offset);
        (load.base == Base::Network).then_some(NetworkLookup { offset, mask: load.mask, slots })
    }

    /// The target of a packet, if it has the word.
    #[inline(always)]
    pub(crate) fn find(&self, network: &[u8]) -> Option<Target> {
        let word = network.get(self.offset..)?.first_chunk()?;
        Some(self.slots.find(u32::from_be_bytes(*word) & self.mask))
    }
}

/// A program with a single comparison. The value is stored in the byte order of memory, so that the
/// loaded word needs no byte swap.
#[derive(Clone, Copy, Debug)]
struct SingleTest {
    base: Base,
    offset: u16,
    mask: u32,
    value: u32,
    /// Outputs, or [`NO_OUTPUT`].
    yes: u8,
    no: u8,
}

impl SingleTest {
    fn new(op: &Op) -> Option<SingleTest> {
        match *op {
            Op::Test { load, lo, span: 0, yes, no, .. } if yes >= OUT && no >= OUT => {
                Some(SingleTest {
                    base: load.base,
                    offset: load.offset,
                    mask: load.mask.to_be(),
                    value: lo.to_be(),
                    yes: output(yes),
                    no: output(no),
                })
            }
            _ => None,
        }
    }

    /// The output, if the packet is long enough for a whole word.
    #[inline(always)]
    fn find<W: HeaderWords>(&self, words: &W) -> Option<u8> {
        let word = words.word(self.base, self.offset)?.to_be();
        Some(if word & self.mask == self.value { self.yes } else { self.no })
    }
}

/// Instructions of a test, as callgrind counts them.
pub(crate) const TEST: u32 = 40;
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

/// How many words a [`SmallDispatch`] compares with.
const SMALL_DISPATCH_WORDS: usize = 4;

/// A dispatch small enough to compare with all its words, without branches.
#[derive(Clone, Copy, Debug)]
struct SmallDispatch {
    load: Load,
    words: [u32; SMALL_DISPATCH_WORDS],
    targets: [Target; SMALL_DISPATCH_WORDS],
    default: Target,
}

impl SmallDispatch {
    fn new(op: &Op) -> Option<SmallDispatch> {
        let Op::Hash { load, slots, .. } = op else { return None };
        let mut dispatch = SmallDispatch {
            load: *load,
            words: [0; SMALL_DISPATCH_WORDS],
            targets: [0; SMALL_DISPATCH_WORDS],
            default: slots.default(),
        };
        // Unused entries repeat the last word.
        let mut known = slots.known().peekable();
        for i in 0..SMALL_DISPATCH_WORDS {
            (dispatch.words[i], dispatch.targets[i]) = match known.next() {
                Some(known) => known,
                None => (*dispatch.words.get(i.checked_sub(1)?)?, dispatch.targets[i - 1]),
            };
        }
        known.peek().is_none().then_some(dispatch)
    }

    /// The target of a packet, if it has the word.
    #[inline(always)]
    fn find<W: HeaderWords>(&self, words: &W) -> Option<Target> {
        let word = words.word(self.load.base, self.load.offset)? & self.load.mask;
        let mut target = self.default;
        for i in 0..SMALL_DISPATCH_WORDS {
            target = if word == self.words[i] { self.targets[i] } else { target };
        }
        Some(target)
    }
}

/// Access to the words of a packet's headers.
pub(crate) trait HeaderWords {
    /// The header and the bytes after it.
    fn header(&self, base: Base) -> &[u8];

    /// The word at `offset` of the header, if the packet has all four bytes.
    fn word(&self, base: Base, offset: u16) -> Option<u32>;

    /// The eight bytes at `offset`, if the packet has them; `bytes` is the header.
    #[inline(always)]
    fn long(&self, bytes: &[u8], _: Base, offset: u16) -> Option<u64> {
        let bytes = bytes.get(usize::from(offset)..)?;
        bytes.first_chunk().map(|b| u64::from_be_bytes(*b))
    }

    /// Like [`HeaderWords::header`], for the hot path.
    fn bytes(&self, base: Base) -> &[u8];

    /// Whether `bytes`, those of a header, are at least `length`.
    #[inline(always)]
    fn has_length(&self, bytes: &[u8], length: usize) -> bool {
        bytes.len() >= length
    }

    /// The number of bytes from the header on.
    fn length(&self, base: Base) -> usize;
}

/// A packet for `Classifier`.
pub(crate) struct RawBytes<'a>(pub(crate) &'a [u8]);

impl HeaderWords for RawBytes<'_> {
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

/// A packet for the IP languages.
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

impl HeaderWords for Headers<'_> {
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

impl Bytecode {
    pub(crate) fn new(graph: &Graph) -> Self {
        let plan = DispatchPlan::new(graph);
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
        let first = ops.get(start as usize).and_then(SmallDispatch::new);
        let single_test = ops.get(start as usize).and_then(SingleTest::new);
        Bytecode { ops: ops.into_boxed_slice(), start, first, single_test }
    }

    /// The output of a packet, if the program is a single test and the packet is long enough.
    #[inline(always)]
    pub(crate) fn run_single<W: HeaderWords>(&self, words: &W) -> Option<u8> {
        self.single_test.as_ref()?.find(words)
    }

    /// The target where every packet begins.
    #[inline(always)]
    pub(crate) fn start(&self) -> Target {
        self.start
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

/// The runs of tests that become dispatches; these follow the tests.
struct DispatchPlan {
    /// For each node, the dispatch that starts with it.
    dispatch: Vec<Target>,
    runs: Vec<Run>,
    nodes: Target,
}

/// A run of nodes along no branches, by number.
struct Run {
    members: Vec<Target>,
    hash: bool,
}

impl DispatchPlan {
    fn new(graph: &Graph) -> Self {
        let nodes = graph.nodes.len() as Target;
        let mut plan =
            DispatchPlan { dispatch: vec![DROP; graph.nodes.len()], runs: Vec::new(), nodes };
        let mut runs = RunCollector::new(graph);
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

    /// The instruction for a branch to `target`.
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
                Op::Hash { load, slots: HashDispatch::new(&ranges, default), short: first }
            } else {
                Op::Intervals {
                    load,
                    intervals: IntervalDispatch::new(&ranges, default),
                    short: first,
                }
            }
        })
    }
}
