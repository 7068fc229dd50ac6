//! Long runs of tests of one word, searched instead of walked when the word is known.

use std::collections::HashMap;

use super::facts::Known;
use super::graph::{Node, Target};
use super::pattern::Test;

/// Runs shorter than this are walked.
const WORTH: u32 = 16;
/// Lookup tables kept; further questions walk.
const TABLES: usize = 4096;

/// Where each node stands in a run: consecutive equality tests of one word, each the
/// `no` branch of the one before it.
pub(crate) struct Runs {
    /// For each node, the run it belongs to.
    run: Vec<u32>,
    runs: Vec<Run>,
    tables: HashMap<(u32, u32, u32), HashMap<u32, Vec<Target>>>,
}

struct Run {
    members: Vec<Target>,
    /// Where the last member's no branch leads.
    end: Target,
    /// The masks that occur.
    masks: Vec<u32>,
}

impl Runs {
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
        Runs { run, runs, tables: HashMap::new() }
    }

    /// The first node from `from` on, in its run, that the `known` bits of `word` do not
    /// refute; where the run ends if they refute all.
    pub(crate) fn skip(
        &mut self,
        nodes: &[Node],
        from: Target,
        word: &Test,
        known: Known,
    ) -> Target {
        let Some(&id) = self.run.get(from as usize) else { return from };
        let Some(run) = self.runs.get(id as usize) else { return from };
        let worth = run.members.len() as u32 >= WORTH && run.masks.len() <= 64;
        let same_word = nodes[from as usize].test.same_word(word);
        if !worth || !same_word || known.mask == 0 {
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

    /// For the run's members of one mask: which of them each value of the known bits leaves.
    fn table(
        &mut self,
        nodes: &[Node],
        id: u32,
        mask: u32,
        known: u32,
    ) -> Option<&HashMap<u32, Vec<Target>>> {
        let key = (id, mask, mask & known);
        if !self.tables.contains_key(&key) {
            if self.tables.len() == TABLES {
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
