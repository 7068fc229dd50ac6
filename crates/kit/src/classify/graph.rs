//! Rules as a graph of tests whose branches only lead forward, and its optimisation.

use std::collections::HashMap;

use super::facts::Facts;
use super::pattern::{Base, Expr, Pattern, Test};
use super::runs::Runs;

/// A node's number, or from [`OUT`] on an end: an output, or [`DROP`].
pub(crate) type Target = u32;
pub(crate) const OUT: Target = 0x8000_0000;
pub(crate) const DROP: Target = OUT + 256;

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
#[derive(Clone, Debug)]
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

    /// The same decisions by fewer tests.
    pub(crate) fn optimised(mut self) -> Self {
        self.thread();
        self.share();
        self.sweep();
        self
    }

    /// Lets every branch skip the tests whose outcome is certain on all paths that take it.
    ///
    /// One pass suffices: branches lead forward, so a node's facts are complete when the
    /// pass reaches it.
    fn thread(&mut self) {
        let mut threader = Threader::new(&self.nodes);
        let mut facts: Vec<Option<Facts>> = vec![None; self.nodes.len()];
        self.start = threader.follow(&self.nodes, self.start, &Facts::default());
        if let Some(first) = facts.get_mut(self.start as usize) {
            *first = Some(Facts::default());
        }
        for i in 0..self.nodes.len() {
            let Some(known) = facts[i].take() else { continue };
            let node = self.nodes[i];
            let mut branches = [node.no, node.yes];
            for (yes, target) in [false, true].into_iter().zip(&mut branches) {
                let mut known = known.clone();
                known.learn(&node.test, node.short_yes, yes);
                *target = threader.follow(&self.nodes, *target, &known);
                match facts.get_mut(*target as usize) {
                    Some(Some(met)) => met.meet(&known),
                    Some(unmet) => *unmet = Some(known),
                    None => {}
                }
            }
            [self.nodes[i].no, self.nodes[i].yes] = branches;
        }
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
