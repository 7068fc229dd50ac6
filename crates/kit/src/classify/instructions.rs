//! The plan of a program's instructions: the tests, and what replaces several of them.

use super::bytecode::{Load, Op};
use super::comparisons::{Comparisons, MOST, WordEquality};
use super::dispatch::{HashDispatch, IntervalDispatch, RunCollector};
use super::graph::{DROP, Graph, Node, Target};
use super::pattern::Test;

/// Longer programs compare word by word: a cache miss of each test costs more.
const MOST_NODES: usize = 1024;

/// The instructions of a graph: first one for each node, then the groups.
pub(crate) struct Instructions<'a> {
    graph: &'a Graph,
    /// For each node, the group that starts with it; [`DROP`] if there is none.
    group: Vec<Target>,
    groups: Vec<Group>,
}

/// Nodes, by number, that one instruction replaces.
enum Group {
    /// Tests of one word for equality along no branches.
    Hash(Vec<Target>),
    /// Tests of one word for intervals along no branches.
    Intervals(Vec<Target>),
    /// Tests for equality along yes branches.
    Comparisons(Vec<Target>),
}

impl<'a> Instructions<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Self {
        let group = vec![DROP; graph.nodes.len()];
        let mut instructions = Instructions { graph, group, groups: Vec::new() };
        instructions.add_runs();
        if graph.nodes.len() <= MOST_NODES {
            instructions.add_comparisons();
        }
        instructions
    }

    fn node(&self, number: Target) -> &'a Node {
        &self.graph.nodes[number as usize]
    }

    fn add(&mut self, first: Target, group: Group) {
        self.group[first as usize] = (self.graph.nodes.len() + self.groups.len()) as Target;
        self.groups.push(group);
    }

    /// Adds the runs of tests of one word.
    fn add_runs(&mut self) {
        let mut runs = RunCollector::new(self.graph);
        let mut inside = vec![false; self.graph.nodes.len()];
        for i in 0..self.graph.nodes.len() as Target {
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
            self.add(i, if hash { Group::Hash(members) } else { Group::Intervals(members) });
        }
    }

    /// Adds comparisons at the nodes where packets come from elsewhere than a comparison before.
    fn add_comparisons(&mut self) {
        let mut entered = vec![false; self.graph.nodes.len()];
        let enter = |entered: &mut Vec<bool>, target: Target| {
            if let Some(is_entered) = entered.get_mut(target as usize) {
                *is_entered = true;
            }
        };
        enter(&mut entered, self.graph.start);
        // Branches lead forward, so all that lead to a node are known when the loop reaches it.
        for i in 0..self.graph.nodes.len() as Target {
            if !entered[i as usize] {
                continue;
            }
            let members = match self.group_of(i) {
                Some(Group::Hash(members) | Group::Intervals(members)) => {
                    members.iter().for_each(|&member| enter(&mut entered, self.node(member).yes));
                    enter(&mut entered, self.node(members[members.len() - 1]).no);
                    continue;
                }
                _ => self.equalities(i),
            };
            let last = members.last().copied().unwrap_or(i);
            members.iter().for_each(|&member| enter(&mut entered, self.node(member).no));
            let Node { yes, no, .. } = *self.node(last);
            [yes, no].into_iter().for_each(|next| enter(&mut entered, next));
            if members.len() > 1 {
                self.add(i, Group::Comparisons(members));
            }
        }
    }

    /// The nodes from `first` on that test for equality, each on the yes branch of the one before.
    fn equalities(&self, first: Target) -> Vec<Target> {
        let mut members = Vec::new();
        let mut at = first;
        while let Some(node) = self.graph.nodes.get(at as usize)
            && node.test.is_equality()
            && self.group_of(at).is_none()
            && members.len() < MOST
        {
            members.push(at);
            at = node.yes;
        }
        members
    }

    fn group_of(&self, node: Target) -> Option<&Group> {
        let group = (*self.group.get(node as usize)? as usize).checked_sub(self.group.len())?;
        self.groups.get(group)
    }

    /// The instruction for a branch to `target`.
    pub(crate) fn entry(&self, target: Target) -> Target {
        match self.group.get(target as usize) {
            Some(&group) if group != DROP => group,
            _ => target,
        }
    }

    /// The instructions of the groups.
    pub(crate) fn ops(&self) -> impl Iterator<Item = Op> {
        self.groups.iter().map(|group| match group {
            Group::Hash(members) => {
                let (load, ranges, default) = self.ranges(members);
                Op::Hash { load, slots: HashDispatch::new(&ranges, default), short: members[0] }
            }
            Group::Intervals(members) => {
                let (load, ranges, default) = self.ranges(members);
                let intervals = IntervalDispatch::new(&ranges, default);
                Op::Intervals { load, intervals, short: members[0] }
            }
            Group::Comparisons(members) => {
                let words: Vec<WordEquality> = members.iter().map(|&i| self.equality(i)).collect();
                let yes = self.entry(self.node(members[members.len() - 1]).yes);
                let comparisons = Comparisons::new(&words, yes);
                Op::Comparisons { comparisons, short: members[0] }
            }
        })
    }

    /// The word that a run of tests reads, its values with their targets, and the target of others.
    fn ranges(&self, members: &[Target]) -> (Load, Vec<(u32, u32, Target)>, Target) {
        let first = self.node(members[0]);
        let mask = members.iter().fold(0, |mask, &i| mask | self.node(i).test.mask);
        let (load, shift) = Load::new(&Test { mask, ..first.test });
        let range = |&i: &Target| {
            let node = self.node(i);
            // Bits below the test's own mask are free.
            let hi = node.test.hi | (mask & !node.test.mask);
            (node.test.lo << shift, hi << shift, self.entry(node.yes))
        };
        let default = self.entry(self.node(members[members.len() - 1]).no);
        (load, members.iter().map(range).collect(), default)
    }

    fn equality(&self, number: Target) -> WordEquality {
        let node = self.node(number);
        let (load, shift) = Load::new(&node.test);
        let (value, no) = (node.test.lo << shift, self.entry(node.no));
        WordEquality { base: load.base, offset: load.offset, mask: load.mask, value, no }
    }
}
