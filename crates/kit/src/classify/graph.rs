//! Rules as a graph of tests whose branches only lead forward, and its optimisation.

use std::collections::HashMap;

use super::facts::Facts;
use super::pattern::{Base, Expr, Pattern, Test};
use super::program::Rule;
use super::runs::Runs;

/// A node's number, or from [`OUT`] on an end: an output's number or a rule's, or [`DROP`].
pub(crate) type Target = u32;
pub(crate) const OUT: Target = 0x8000_0000;
pub(crate) const DROP: Target = Target::MAX - 1;

/// One test and its branches.
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
    /// Strings the patterns together, each with its end; what none takes is dropped.
    pub(crate) fn new<'a>(rules: impl Iterator<Item = (&'a Pattern, Target)>) -> Self {
        let mut nodes = Vec::new();
        for (pattern, end) in rules {
            lower(pattern, end, &mut nodes);
        }
        // The last rule's refusals lead beyond the last node.
        let beyond = nodes.len() as Target;
        let targets = nodes.iter_mut().flat_map(|n: &mut Node| [&mut n.yes, &mut n.no]);
        targets.filter(|t| **t == beyond).for_each(|t| *t = DROP);
        let start = if nodes.is_empty() { DROP } else { 0 };
        Graph { nodes, start }
    }

    /// The tests of rules, whose ends are their outputs.
    pub(crate) fn of_outputs<'a>(rules: impl Iterator<Item = &'a Rule>) -> Self {
        let target = |output: Option<u8>| output.map_or(DROP, |port| OUT + Target::from(port));
        Graph::new(rules.map(|rule| (&rule.pattern, target(rule.output)))).optimised()
    }

    /// The same decisions by fewer tests.
    pub(crate) fn optimised(mut self) -> Self {
        self.thread();
        self.share();
        self.sweep();
        self
    }

    /// Lets every branch skip the tests whose outcome is certain on all paths that take it.
    ///
    /// A node that is reached in different states of knowledge becomes up to `width` nodes,
    /// after which those states are reduced to what they have in common. One pass suffices:
    /// branches lead forward, so all ways to a node are known when the pass reaches it.
    fn thread(&mut self) {
        // Sets of rules too long to be taken apart this way have their runs instead.
        let width = if self.nodes.len() <= 2048 { 8 } else { 1 };
        let mut threader = Threader::new(&self.nodes);
        let mut copies = Copies::new(self.nodes.len(), width);
        let start = threader.follow(&self.nodes, self.start, &Facts::default());
        let start = copies.enter(start, &Facts::default());
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for (i, node) in self.nodes.iter().enumerate() {
            for (id, facts) in std::mem::take(&mut copies.of[i]) {
                copies.number[id as usize] = nodes.len() as Target;
                let mut branch = |yes: bool| {
                    let mut known = facts.clone();
                    known.learn(&node.test, node.short_yes, yes);
                    let target = threader.follow(&self.nodes, node.branch(yes), &known);
                    copies.enter(target, &known)
                };
                let (yes, no) = (branch(true), branch(false));
                nodes.push(Node { yes, no, ..*node });
            }
        }
        for node in &mut nodes {
            (node.yes, node.no) = (copies.numbered(node.yes), copies.numbered(node.no));
        }
        self.start = copies.numbered(start);
        self.nodes = nodes;
    }

    /// Makes equal subgraphs one, drops tests that do not matter and joins tests of one word.
    fn share(&mut self) {
        let mut seen: HashMap<Node, Target> = HashMap::with_capacity(self.nodes.len());
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
                false => *seen.entry(node).or_insert(i as Target),
            };
        }
        self.start = canon.get(self.start as usize).copied().unwrap_or(self.start);
    }

    /// Removes what cannot be reached and numbers the rest in order.
    fn sweep(&mut self) {
        let mut reached = vec![false; self.nodes.len()];
        if let Some(first) = reached.get_mut(self.start as usize) {
            *first = true;
        }
        let mut number = vec![0; self.nodes.len()];
        let mut kept = Vec::new();
        for (i, node) in self.nodes.iter().enumerate() {
            if reached[i] {
                number[i] = kept.len() as Target;
                kept.push(*node);
                for target in [node.yes, node.no] {
                    if let Some(reached) = reached.get_mut(target as usize) {
                        *reached = true;
                    }
                }
            }
        }
        let renumber = |t: Target| number.get(t as usize).copied().unwrap_or(t);
        for node in &mut kept {
            (node.yes, node.no) = (renumber(node.yes), renumber(node.no));
        }
        self.start = renumber(self.start);
        self.nodes = kept;
    }
}

/// Appends one node for each leaf of `pattern`; refusals lead to the node after them.
fn lower(pattern: &Pattern, end: Target, nodes: &mut Vec<Node>) {
    let exprs = &pattern.nodes;
    let first = nodes.len() as Target;
    // Bottom up: where each subexpression begins. Operands stand before their operator.
    let mut entry: Vec<Target> = Vec::with_capacity(exprs.len());
    let mut leaves = first;
    for expr in exprs {
        entry.push(match *expr {
            Expr::Const(_) | Expr::Test { .. } => {
                leaves += 1;
                leaves - 1
            }
            Expr::Not(a) | Expr::And(a, _) | Expr::Or(a, _) | Expr::Cond(a, ..) => {
                entry[a as usize]
            }
        });
    }
    let unused = Test::equal(Base::Packet, 0, 0, 0);
    let empty = Node { test: unused, short_yes: false, yes: DROP, no: DROP };
    nodes.resize(leaves as usize, empty);
    // Top down: where each subexpression leads.
    let mut leads = vec![(DROP, DROP); exprs.len()];
    if let Some(root) = leads.last_mut() {
        *root = (end, leaves);
    }
    for (i, expr) in exprs.iter().enumerate().rev() {
        let (yes, no) = leads[i];
        match *expr {
            Expr::Const(holds) => {
                let lo = u32::from(!holds);
                let test = Test { lo, hi: lo, ..unused };
                nodes[entry[i] as usize] = Node { test, short_yes: false, yes, no };
            }
            Expr::Test { test, negated } => {
                let (yes, no) = if negated { (no, yes) } else { (yes, no) };
                nodes[entry[i] as usize] = Node { test, short_yes: negated, yes, no };
            }
            Expr::Not(a) => leads[a as usize] = (no, yes),
            Expr::And(a, b) => {
                leads[a as usize] = (entry[b as usize], no);
                leads[b as usize] = (yes, no);
            }
            Expr::Or(a, b) => {
                leads[a as usize] = (yes, entry[b as usize]);
                leads[b as usize] = (yes, no);
            }
            Expr::Cond(a, b, c) => {
                leads[a as usize] = (entry[b as usize], entry[c as usize]);
                leads[b as usize] = (yes, no);
                leads[c as usize] = (yes, no);
            }
        }
    }
}

/// `node` and the `next` that its yes branch leads to as one test of the same word.
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

/// The copies of nodes that differ in what is known there.
struct Copies {
    width: usize,
    /// For each node, its copies: their identity and what is known.
    of: Vec<Vec<(u32, Facts)>>,
    /// For each copy, the number it gets in the new graph.
    number: Vec<Target>,
}

impl Copies {
    fn new(nodes: usize, width: usize) -> Self {
        Copies { width, of: vec![Vec::new(); nodes], number: Vec::new() }
    }

    /// The copy of `target` for `facts`; ends stand for themselves.
    fn enter(&mut self, target: Target, facts: &Facts) -> Target {
        let Some(copies) = self.of.get_mut(target as usize) else { return target };
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

    fn numbered(&self, target: Target) -> Target {
        self.number.get(target as usize).copied().unwrap_or(target)
    }
}

/// Follows branches through tests that are already decided, within a budget.
struct Threader {
    runs: Runs,
    /// Steps left. Running out costs optimisation, not correctness.
    budget: usize,
}

impl Threader {
    fn new(nodes: &[Node]) -> Self {
        Threader { runs: Runs::new(nodes), budget: (1 << 18) + nodes.len() * 32 }
    }

    fn follow(&mut self, nodes: &[Node], mut target: Target, facts: &Facts) -> Target {
        while let Some(node) = nodes.get(target as usize) {
            let Some(budget) = self.budget.checked_sub(1) else { break };
            self.budget = budget;
            let Some(answer) = facts.decide(&node.test, node.short_yes) else { break };
            target = node.branch(answer);
            if !answer {
                target = self.runs.skip(nodes, target, &node.test, facts.known(&node.test));
            }
        }
        target
    }
}
