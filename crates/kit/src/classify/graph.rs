//! A graph of tests whose branches only lead forward, and its optimisation.

use std::collections::HashMap;

use super::facts::Facts;
use super::pattern::{Base, Expr, Next, Pattern, Test};
use super::program::Rule;
use super::runs::RunIndex;

/// A node's number, or from [`OUT`] on a final target: an output's or a rule's number, or [`DROP`].
pub(crate) type Target = u32;
pub(crate) const OUT: Target = 0x8000_0000;
pub(crate) const DROP: Target = Target::MAX - 1;

/// A test and its branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) test: Test,
    /// Whether packets too short for the test take the yes branch.
    pub(crate) short_yes: bool,
    pub(crate) yes: Target,
    pub(crate) no: Target,
}

impl Node {
    pub(crate) fn branch(&self, yes: bool) -> Target {
        if yes { self.yes } else { self.no }
    }
}

/// Tests in an order in which every branch leads forward.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) start: Target,
}

impl Graph {
    /// Chains patterns, each with its final target; a packet that matches none is dropped.
    pub(crate) fn new<'a>(rules: impl Iterator<Item = (&'a Pattern, Target)>) -> Self {
        let mut nodes = Vec::new();
        for (pattern, end) in rules {
            lower(pattern, end, &mut nodes);
        }
        // The no branches of the last rule lead beyond the last node.
        let beyond = nodes.len() as Target;
        let targets = nodes.iter_mut().flat_map(|n: &mut Node| [&mut n.yes, &mut n.no]);
        targets.filter(|t| **t == beyond).for_each(|t| *t = DROP);
        let start = if nodes.is_empty() { DROP } else { 0 };
        Graph { nodes, start }
    }

    /// The optimised graph of rules, whose final targets are outputs.
    pub(crate) fn from_rules<'a>(rules: impl Iterator<Item = &'a Rule>) -> Self {
        let target = |output: Option<u8>| output.map_or(DROP, |port| OUT + Target::from(port));
        Graph::new(rules.map(|rule| (&rule.pattern, target(rule.output)))).optimised()
    }

    /// An equivalent graph with fewer tests.
    pub(crate) fn optimised(mut self) -> Self {
        self.thread_jumps();
        self.merge_equal();
        self.remove_unreachable();
        self
    }

    /// Jump threading: lets every branch skip the tests that its facts decide.
    ///
    /// A node that is reached with different facts is copied up to `width` times; after that, the
    /// facts of further branches are merged. One pass suffices: branches lead forward, so all edges
    /// to a node are known when the pass reaches it.
    fn thread_jumps(&mut self) {
        // Longer programs rely on runs instead of copies.
        let width = if self.nodes.len() <= 2048 { 8 } else { 1 };
        let mut jumps = JumpThreader::new(&self.nodes);
        let mut copies = NodeCopies::new(self.nodes.len(), width);
        let start = jumps.follow(&self.nodes, self.start, &Facts::default());
        let start = copies.enter(start, &Facts::default());
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for (i, node) in self.nodes.iter().enumerate() {
            for (id, facts) in std::mem::take(&mut copies.by_node[i]) {
                copies.number[id as usize] = nodes.len() as Target;
                let mut branch = |yes: bool| {
                    let mut known = facts.clone();
                    known.assume(&node.test, node.short_yes, yes);
                    let target = jumps.follow(&self.nodes, node.branch(yes), &known);
                    copies.enter(target, &known)
                };
                let (yes, no) = (branch(true), branch(false));
                nodes.push(Node { yes, no, ..*node });
            }
        }
        for node in &mut nodes {
            (node.yes, node.no) = (copies.new_number(node.yes), copies.new_number(node.no));
        }
        self.start = copies.new_number(start);
        self.nodes = nodes;
    }

    /// Merges equal subgraphs, removes tests without effect and joins tests of one word.
    fn merge_equal(&mut self) {
        let mut unique: HashMap<Node, Target> = HashMap::with_capacity(self.nodes.len());
        let mut canon: Vec<Target> = vec![DROP; self.nodes.len()];
        for i in (0..self.nodes.len()).rev() {
            let follow = |t: Target| canon.get(t as usize).copied().unwrap_or(t);
            let mut node = self.nodes[i];
            (node.yes, node.no) = (follow(node.yes), follow(node.no));
            while let Some(joined) =
                self.nodes.get(node.yes as usize).and_then(|next| join(&node, next))
            {
                node = joined;
            }
            self.nodes[i] = node;
            canon[i] = match node.yes == node.no {
                true => node.yes,
                false => *unique.entry(node).or_insert(i as Target),
            };
        }
        self.start = canon.get(self.start as usize).copied().unwrap_or(self.start);
    }

    /// Removes unreachable nodes and renumbers the others in order.
    fn remove_unreachable(&mut self) {
        let mut reached = vec![false; self.nodes.len()];
        if let Some(first) = reached.get_mut(self.start as usize) {
            *first = true;
        }
        let mut number = vec![0; self.nodes.len()];
        let mut reachable = Vec::new();
        for (i, node) in self.nodes.iter().enumerate() {
            if reached[i] {
                number[i] = reachable.len() as Target;
                reachable.push(*node);
                for target in [node.yes, node.no] {
                    if let Some(reached) = reached.get_mut(target as usize) {
                        *reached = true;
                    }
                }
            }
        }
        let renumber = |t: Target| number.get(t as usize).copied().unwrap_or(t);
        for node in &mut reachable {
            (node.yes, node.no) = (renumber(node.yes), renumber(node.no));
        }
        self.start = renumber(self.start);
        self.nodes = reachable;
    }
}

/// Appends one node for each leaf of `pattern`; its no branches lead to the node after them.
fn lower(pattern: &Pattern, end: Target, nodes: &mut Vec<Node>) {
    let leaves = pattern.leaves();
    let first = nodes.len() as Target;
    let beyond = first + leaves.len() as Target;
    let target = |next| match next {
        Next::Leaf(leaf) => first + leaf,
        Next::Match => end,
        Next::Mismatch => beyond,
    };
    nodes.extend(leaves.iter().map(|leaf| {
        let (yes, no) = (target(leaf.yes), target(leaf.no));
        match leaf.expr {
            Expr::Test { test, negated: false, .. } => Node { test, short_yes: false, yes, no },
            Expr::Test { test, .. } => Node { test, short_yes: true, yes: no, no: yes },
            // A word without bits is 0.
            expr => {
                let lo = u32::from(!matches!(expr, Expr::Const(true, _)));
                let test = Test { base: Base::Packet, offset: 0, mask: 0, lo, hi: lo };
                Node { test, short_yes: false, yes, no }
            }
        }
    }));
}

/// One test for `node` and the `next` node on its yes branch, if both read the same word.
fn join(node: &Node, next: &Node) -> Option<Node> {
    let (a, b) = (&node.test, &next.test);
    let fits = a.same_word(b)
        && a.is_equality()
        && b.is_equality()
        && !node.short_yes
        && !next.short_yes
        && node.no == next.no
        && (a.lo ^ b.lo) & a.mask & b.mask == 0;
    let test = Test::equal(a.base, a.offset, a.mask | b.mask, a.lo | b.lo);
    fits.then_some(Node { test, yes: next.yes, ..*node })
}

/// Copies of nodes, by the facts that hold there.
struct NodeCopies {
    width: usize,
    /// For each node, its copies: their id and their facts.
    by_node: Vec<Vec<(u32, Facts)>>,
    /// For each copy, its number in the new graph.
    number: Vec<Target>,
}

impl NodeCopies {
    fn new(nodes: usize, width: usize) -> Self {
        NodeCopies { width, by_node: vec![Vec::new(); nodes], number: Vec::new() }
    }

    /// The copy of `target` for `facts`; final targets stay as they are.
    fn enter(&mut self, target: Target, facts: &Facts) -> Target {
        let Some(copies) = self.by_node.get_mut(target as usize) else { return target };
        if let Some((id, _)) = copies.iter().find(|(_, known)| known == facts) {
            return *id;
        }
        if copies.len() == self.width
            && let Some((id, known)) = copies.last_mut()
        {
            known.meet(facts);
            return *id;
        }
        copies.push((self.number.len() as u32, facts.clone()));
        self.number.push(DROP);
        self.number.len() as Target - 1
    }

    fn new_number(&self, target: Target) -> Target {
        self.number.get(target as usize).copied().unwrap_or(target)
    }
}

/// Follows branches through tests that the facts decide, within a budget.
struct JumpThreader {
    runs: RunIndex,
    /// Steps left. An exhausted budget costs optimisation, not correctness.
    budget: usize,
}

impl JumpThreader {
    fn new(nodes: &[Node]) -> Self {
        JumpThreader { runs: RunIndex::new(nodes), budget: (1 << 18) + nodes.len() * 32 }
    }

    fn follow(&mut self, nodes: &[Node], mut target: Target, facts: &Facts) -> Target {
        while let Some(node) = nodes.get(target as usize) {
            let Some(budget) = self.budget.checked_sub(1) else { break };
            self.budget = budget;
            let Some(answer) = facts.decide(&node.test, node.short_yes) else { break };
            target = node.branch(answer);
            if !answer {
                target = self.runs.skip(nodes, target, &node.test, facts.known_bits(&node.test));
            }
        }
        target
    }
}
