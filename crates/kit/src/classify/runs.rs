//! Long runs of tests of one word, searched instead of walked when bits of the word are known.

use std::collections::HashMap;

use super::facts::KnownBits;
use super::graph::{Node, Target};
use super::pattern::Test;

/// Shorter runs are walked.
const MIN_LENGTH: u32 = 16;
/// The largest number of lookup tables; without a table a run is walked.
const MAX_TABLES: usize = 4096;

/// The runs of a program: consecutive equality tests of one word, each on the no branch of the one
/// before.
pub(crate) struct RunIndex {
    /// For each node, its run.
    run: Vec<u32>,
    runs: Vec<Run>,
    tables: HashMap<(u32, u32, u32), HashMap<u32, Vec<Target>>>,
}

struct Run {
    members: Vec<Target>,
    /// The target of the last member's no branch.
    end: Target,
    /// The different masks of the members.
    masks: Vec<u32>,
}

impl RunIndex {
    pub(crate) fn new(nodes: &[Node]) -> Self {
        const NONE: u32 = u32::MAX;
        let mut run = vec![NONE; nodes.len()];
        let mut runs: Vec<Run> = Vec::new();
        for i in 0..nodes.len() {
            if run[i] != NONE || !searchable(&nodes[i]) {
                continue;
            }
            let id = runs.len() as u32;
            let mut members = Vec::new();
            let mut at = i as Target;
            while let Some(node) = nodes.get(at as usize)
                && searchable(node)
                && node.test.same_word(&nodes[i].test)
                && run[at as usize] == NONE
            {
                run[at as usize] = id;
                members.push(at);
                at = node.no;
            }
            let mut masks: Vec<u32> =
                members.iter().map(|&m| nodes[m as usize].test.mask).collect();
            masks.sort_unstable();
            masks.dedup();
            runs.push(Run { members, end: at, masks });
        }
        RunIndex { run, runs, tables: HashMap::new() }
    }

    /// The first node of the run from `from` on that the `known` bits of `word` do not refute, or
    /// the end of the run.
    pub(crate) fn skip(
        &mut self,
        nodes: &[Node],
        from: Target,
        word: &Test,
        known: KnownBits,
    ) -> Target {
        let Some(&id) = self.run.get(from as usize) else { return from };
        let Some(run) = self.runs.get(id as usize) else { return from };
        let is_long = run.members.len() as u32 >= MIN_LENGTH && run.masks.len() <= 64;
        let same_word = nodes[from as usize].test.same_word(word);
        if !is_long || !same_word || known.mask == 0 {
            return from;
        }
        let mut best = run.end;
        for i in 0..run.masks.len() {
            let mask = self.runs[id as usize].masks[i];
            let Some(candidates) = self.table(nodes, id, mask, known.mask) else { return from };
            if let Some(list) = candidates.get(&(known.value & mask & known.mask)) {
                let at = list.partition_point(|&t| t < from);
                best = list.get(at).map_or(best, |&t| t.min(best));
            }
        }
        best
    }

    /// For the run's members with one mask: the members that match each value of the known bits.
    fn table(
        &mut self,
        nodes: &[Node],
        id: u32,
        mask: u32,
        known: u32,
    ) -> Option<&HashMap<u32, Vec<Target>>> {
        let key = (id, mask, mask & known);
        if !self.tables.contains_key(&key) {
            if self.tables.len() == MAX_TABLES {
                return None;
            }
            let mut table: HashMap<u32, Vec<Target>> = HashMap::new();
            for &member in &self.runs[id as usize].members {
                let test = &nodes[member as usize].test;
                if test.mask == mask {
                    table.entry(test.lo & known).or_default().push(member);
                }
            }
            self.tables.insert(key, table);
        }
        self.tables.get(&key)
    }
}

fn searchable(node: &Node) -> bool {
    node.test.is_equality() && !node.short_yes && node.test.mask != 0
}
