//! Runs of tests of one word answered at once: by hash if all are equalities under one mask,
//! by search among intervals otherwise.

use super::graph::{Graph, Target};
use super::pattern::Test;

/// Finds runs, along no branches.
///
/// A node that other branches enter too begins a run of its own, so a run that goes on past
/// one has its rest twice. That is worth it as long as `spare` lasts, which keeps the whole
/// linear in the size of the graph.
pub(crate) struct Runs<'a> {
    graph: &'a Graph,
    /// How many branches enter each node.
    pub(crate) entries: Vec<u32>,
    spare: usize,
}

impl<'a> Runs<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Self {
        let mut entries = vec![0; graph.nodes.len()];
        for target in graph.nodes.iter().flat_map(|n| [n.yes, n.no]) {
            if let Some(count) = entries.get_mut(target as usize) {
                *count += 1;
            }
        }
        Runs { graph, entries, spare: 8 * graph.nodes.len() + 4096 }
    }

    /// The nodes from `first` on that compare one word under one mask for equality.
    pub(crate) fn equalities(&mut self, first: Target) -> Vec<Target> {
        let mask = self.graph.nodes[first as usize].test.mask;
        self.collect(first, |test| test.mask == mask && test.is_equality())
    }

    /// The nodes from `first` on whose tests are intervals of one masked word.
    ///
    /// A mask that lacks only bits below its own lowest makes a test an interval.
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

/// A hash table with open addressing that is never more than half full.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    slots: Box<[Slot]>,
    multiplier: u32,
    shift: u32,
    default: Target,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    word: u32,
    target: Target,
}

/// Marks a slot without a word; no branch leads there.
const EMPTY: Target = Target::MAX;

impl Slots {
    /// The table of `(word, word, target)`; the first of equal words counts.
    pub(crate) fn new(ranges: &[(u32, u32, Target)], default: Target) -> Self {
        let bits = (ranges.len().max(2) * 2).next_power_of_two().trailing_zeros()
            + u32::from(ranges.len() <= 32);
        // For the few words that most programs know, look for a multiplier under which no two
        // collide; for more, one that scatters well will do.
        let tries = if ranges.len() <= 64 { 64 } else { 2 };
        let mut multiplier = 0x9E37_79B1u32;
        let mut best: Option<(usize, Slots)> = None;
        for _ in 0..tries {
            let mut table = Slots {
                slots: vec![Slot { word: 0, target: EMPTY }; 1 << bits].into_boxed_slice(),
                multiplier,
                shift: 32 - bits,
                default,
            };
            let probes: usize = ranges.iter().map(|&(word, _, t)| table.insert(word, t)).sum();
            if best.as_ref().is_none_or(|(least, _)| probes < *least) {
                best = Some((probes, table));
            }
            if probes == 0 {
                break;
            }
            multiplier = multiplier.wrapping_mul(0x2C1B_3C6D) | 1;
        }
        best.map(|(_, table)| table).unwrap_or_else(|| Slots {
            slots: Box::new([Slot { word: 0, target: EMPTY }]),
            multiplier,
            shift: 31,
            default,
        })
    }

    fn home(&self, word: u32) -> usize {
        ((word ^ word >> 16).wrapping_mul(self.multiplier) >> self.shift) as usize
    }

    /// Adds a word and returns how far it stands from its home.
    fn insert(&mut self, word: u32, target: Target) -> usize {
        let last = self.slots.len() - 1;
        let mut at = self.home(word) & last;
        let mut probes = 0;
        while self.slots[at].target != EMPTY {
            if self.slots[at].word == word {
                return 0;
            }
            at = (at + 1) & last;
            probes += 1;
        }
        self.slots[at] = Slot { word, target };
        probes
    }

    /// Where words lead that the table does not know.
    pub(crate) fn default(&self) -> Target {
        self.default
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.slots[..])
    }

    /// The words that the table knows, and where they lead.
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

/// Disjoint intervals that cover all words, by where they begin.
#[derive(Clone, Debug)]
pub(crate) struct Intervals {
    starts: Box<[u32]>,
    targets: Box<[Target]>,
}

impl Intervals {
    /// The intervals of which the first in `ranges` that covers a word gives its target.
    pub(crate) fn new(ranges: &[(u32, u32, Target)], default: Target) -> Self {
        let mut starts: Vec<u32> = vec![0];
        for &(lo, hi, _) in ranges {
            starts.push(lo);
            starts.extend(hi.checked_add(1));
        }
        starts.sort_unstable();
        starts.dedup();
        let mut targets = vec![default; starts.len()];
        // `next[i]` leads to the first interval from `i` on that no range has taken yet.
        let mut next: Vec<usize> = (0..=starts.len()).collect();
        for &(lo, hi, target) in ranges {
            let mut i = free(&mut next, starts.partition_point(|&s| s < lo));
            while i < starts.len() && starts[i] <= hi {
                targets[i] = target;
                next[i] = i + 1;
                i = free(&mut next, i + 1);
            }
        }
        let mut kept: Vec<(u32, Target)> = starts.into_iter().zip(targets).collect();
        kept.dedup_by_key(|&mut (_, target)| target);
        Intervals {
            starts: kept.iter().map(|k| k.0).collect(),
            targets: kept.iter().map(|k| k.1).collect(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.starts[..]) + size_of_val(&self.targets[..])
    }

    /// How often the list is halved until one is left.
    pub(crate) fn halvings(&self) -> u32 {
        self.starts.len().next_power_of_two().ilog2()
    }

    #[inline(always)]
    pub(crate) fn find(&self, word: u32) -> Target {
        // The first interval begins at zero.
        let at = self.starts.partition_point(|&start| start <= word) - 1;
        self.targets[at]
    }
}

/// The representative of `i`, halving the path to it.
fn free(next: &mut [usize], mut i: usize) -> usize {
    while next[i] != i {
        next[i] = next[next[i]];
        i = next[i];
    }
    i
}
