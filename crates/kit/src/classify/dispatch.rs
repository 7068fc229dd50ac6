//! Dispatches: runs of tests of one word, replaced by a hash lookup if all are equalities under one
//! mask, else by a binary search among intervals.

use super::graph::{Graph, Target};
use super::pattern::Test;
use std::sync::Arc;

/// Collects runs of tests along no branches.
///
/// A node with several incoming branches also starts a run of its own, so a run that continues past
/// it duplicates the rest. `spare` limits these duplicates, so that the whole is linear in the size
/// of the graph.
pub(crate) struct RunCollector<'a> {
    graph: &'a Graph,
    /// The number of incoming branches of each node.
    pub(crate) entries: Vec<u32>,
    spare: usize,
}

impl<'a> RunCollector<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Self {
        let mut entries = vec![0; graph.nodes.len()];
        for target in graph.nodes.iter().flat_map(|n| [n.yes, n.no]) {
            if let Some(count) = entries.get_mut(target as usize) {
                *count += 1;
            }
        }
        RunCollector { graph, entries, spare: 8 * graph.nodes.len() + 4096 }
    }

    /// The nodes from `first` on that test one word under one mask for equality.
    pub(crate) fn equalities(&mut self, first: Target) -> Vec<Target> {
        let mask = self.graph.nodes[first as usize].test.mask;
        self.collect(first, |test| test.mask == mask && test.is_equality())
    }

    /// The nodes from `first` on whose tests are intervals of one masked word.
    ///
    /// A mask that lacks only bits below its lowest bit makes a test an interval.
    pub(crate) fn intervals(&mut self, first: Target) -> Vec<Target> {
        let mut union = self.graph.nodes[first as usize].test.mask;
        self.collect(first, |test| {
            let (wide, narrow) = (union | test.mask, union & test.mask);
            let nested = narrow == union || narrow == test.mask;
            let fits = nested && narrow != 0 && wide & !narrow < 1 << narrow.trailing_zeros();
            if fits {
                union = wide;
            }
            fits
        })
    }

    fn collect(&mut self, first: Target, mut fits: impl FnMut(&Test) -> bool) -> Vec<Target> {
        let head = &self.graph.nodes[first as usize].test;
        let mut members = Vec::new();
        let mut at = first;
        let mut twice = false;
        while let Some(node) = self.graph.nodes.get(at as usize)
            && !node.short_yes
            && node.test.same_word(head)
            && fits(&node.test)
        {
            twice |= at != first && self.entries[at as usize] > 1;
            if twice {
                let Some(spare) = self.spare.checked_sub(1) else { break };
                self.spare = spare;
            }
            members.push(at);
            at = node.no;
        }
        members
    }
}

/// A hash table with open addressing that is at most half full.
#[derive(Clone, Debug)]
pub(crate) struct HashDispatch {
    /// Clones share them: a program has the same table as an instruction and as its first lookup.
    slots: Arc<[Slot]>,
    multiplier: u32,
    shift: u32,
    default: Target,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    word: u32,
    target: Target,
}

/// Marks an empty slot; no branch has this target.
const EMPTY: Target = Target::MAX;

impl HashDispatch {
    /// The table of `(word, word, target)`; of equal words the first counts.
    pub(crate) fn new(ranges: &[(u32, u32, Target)], default: Target) -> Self {
        let bits = (ranges.len().max(2) * 2).next_power_of_two().trailing_zeros()
            + u32::from(ranges.len() <= 32);
        // For few words, as in most programs, search for a multiplier without collisions;
        // for more, any that scatters well will do.
        let tries = if ranges.len() <= 64 { 64 } else { 2 };
        let mut multiplier = 0x9E37_79B1u32;
        let mut best: Option<(usize, HashDispatch)> = None;
        for _ in 0..tries {
            let mut table = HashDispatch {
                slots: vec![Slot { word: 0, target: EMPTY }; 1 << bits].into(),
                multiplier,
                shift: 32 - bits,
                default,
            };
            let probes: usize = ranges.iter().map(|&(word, _, t)| table.insert(word, t)).sum();
            if best.as_ref().is_none_or(|(fewest, _)| probes < *fewest) {
                best = Some((probes, table));
            }
            if probes == 0 {
                break;
            }
            multiplier = multiplier.wrapping_mul(0x2C1B_3C6D) | 1;
        }
        best.map(|(_, table)| table).unwrap_or_else(|| HashDispatch {
            slots: Arc::new([Slot { word: 0, target: EMPTY }]),
            multiplier,
            shift: 31,
            default,
        })
    }

    fn home(&self, word: u32) -> usize {
        ((word ^ word >> 16).wrapping_mul(self.multiplier) >> self.shift) as usize
    }

    /// Adds a word and returns its distance from its home slot.
    fn insert(&mut self, word: u32, target: Target) -> usize {
        let home = self.home(word);
        let slots = Arc::make_mut(&mut self.slots);
        let last = slots.len() - 1;
        let mut at = home & last;
        let mut probes = 0;
        while slots[at].target != EMPTY {
            if slots[at].word == word {
                return 0;
            }
            at = (at + 1) & last;
            probes += 1;
        }
        slots[at] = Slot { word, target };
        probes
    }

    /// The target of words that are not in the table.
    pub(crate) fn default(&self) -> Target {
        self.default
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.slots[..])
    }

    /// The words of the table and their targets.
    pub(crate) fn known(&self) -> impl Iterator<Item = (u32, Target)> {
        self.slots.iter().filter(|s| s.target != EMPTY).map(|s| (s.word, s.target))
    }

    #[inline(always)]
    pub(crate) fn find(&self, word: u32) -> Target {
        let last = self.slots.len() - 1;
        let mut at = self.home(word);
        loop {
            let slot = self.slots[at & last];
            if slot.target == EMPTY {
                return self.default;
            }
            if slot.word == word {
                return slot.target;
            }
            at += 1;
        }
    }
}

/// Disjoint intervals that cover all words, by their start.
#[derive(Clone, Debug)]
pub(crate) struct IntervalDispatch {
    starts: Box<[u32]>,
    targets: Box<[Target]>,
}

impl IntervalDispatch {
    /// The intervals; each word has the target of the first range in `ranges` that covers it.
    pub(crate) fn new(ranges: &[(u32, u32, Target)], default: Target) -> Self {
        let mut starts: Vec<u32> = vec![0];
        for &(lo, hi, _) in ranges {
            starts.push(lo);
            starts.extend(hi.checked_add(1));
        }
        starts.sort_unstable();
        starts.dedup();
        let mut targets = vec![default; starts.len()];
        // `next[i]` leads to the first interval from `i` on that has no target yet.
        let mut next: Vec<usize> = (0..=starts.len()).collect();
        for &(lo, hi, target) in ranges {
            let mut i = free(&mut next, starts.partition_point(|&s| s < lo));
            while i < starts.len() && starts[i] <= hi {
                targets[i] = target;
                next[i] = i + 1;
                i = free(&mut next, i + 1);
            }
        }
        let mut intervals: Vec<(u32, Target)> = starts.into_iter().zip(targets).collect();
        intervals.dedup_by_key(|&mut (_, target)| target);
        IntervalDispatch {
            starts: intervals.iter().map(|k| k.0).collect(),
            targets: intervals.iter().map(|k| k.1).collect(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.starts[..]) + size_of_val(&self.targets[..])
    }

    /// The number of steps of a binary search.
    pub(crate) fn search_steps(&self) -> u32 {
        self.starts.len().next_power_of_two().ilog2()
    }

    #[inline(always)]
    pub(crate) fn find(&self, word: u32) -> Target {
        // The first interval starts at zero.
        let at = self.starts.partition_point(|&start| start <= word) - 1;
        self.targets[at]
    }
}

/// The representative of `i`, with path halving.
fn free(next: &mut [usize], mut i: usize) -> usize {
    while next[i] != i {
        next[i] = next[next[i]];
        i = next[i];
    }
    i
}
