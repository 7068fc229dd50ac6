//! Parsed patterns: an expression over tests of masked words, flat in one vector.

use super::error::RuleError;

/// The header that a test's offset is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Base {
    /// The first byte of the packet.
    Packet,
    /// Two bytes before the link header, so that the network header is word-aligned.
    Link,
    /// The network header.
    Network,
    /// The transport header.
    Transport,
}

/// True if `lo <= word & mask <= hi`, where `word` is the big-endian word at `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Test {
    /// The header that the offset is relative to.
    pub base: Base,
    /// The offset in bytes, a multiple of four.
    pub offset: u16,
    /// The bits that are compared.
    pub mask: u32,
    /// The smallest accepted value.
    pub lo: u32,
    /// The largest accepted value.
    pub hi: u32,
}

impl Test {
    pub(crate) fn equal(base: Base, offset: u16, mask: u32, value: u32) -> Self {
        Test { base, offset, mask, lo: value & mask, hi: value & mask }
    }

    /// The bytes that the header must have for the test: up to the last masked one.
    pub fn needs(&self) -> u16 {
        self.offset + 4 - (self.mask.trailing_zeros() / 8) as u16
    }

    /// Whether only one value is accepted.
    pub fn is_equality(&self) -> bool {
        self.lo == self.hi
    }

    pub(crate) fn same_word(&self, other: &Test) -> bool {
        self.base == other.base && self.offset == other.offset
    }

    pub(crate) fn accepts(&self, word: u32) -> bool {
        (self.lo..=self.hi).contains(&(word & self.mask))
    }
}

/// A word of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// The header that the offset is relative to.
    pub(crate) base: Base,
    /// The offset in bytes, a multiple of four.
    pub(crate) offset: u16,
}

impl Word {
    /// The first word of the packet.
    pub(crate) const FIRST: Word = Word { base: Base::Packet, offset: 0 };
}

/// The relation by which a test is written, from which Click's instructions follow
/// ([`super::click_program`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A value.
    Value,
    /// A value that Click compares twice: the protocol of a packet, as the protocol that a primitive
    /// needs and as the value that it asks for.
    ValueTwice,
    /// All values above or, where the test accepts 0, up to a limit, of a field whose lowest bit is
    /// the word's bit `shift`.
    Limit { shift: u8 },
}

/// An index of [`Pattern::nodes`].
pub(crate) type Id = u32;

/// One node of an expression; its operands precede it in the vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    /// Always true or always false: a word of which no bit is compared.
    Const(bool, Word),
    /// The test, or (`negated`) its opposite; both are false for a short packet.
    Test {
        test: Test,
        negated: bool,
        form: Form,
    },
    Not(Id),
    And(Id, Id),
    Or(Id, Id),
    /// If the first holds then the second, else the third.
    Cond(Id, Id, Id),
}

/// The continuation of a pattern's evaluation behind a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The leaf of this number in [`Pattern::leaves`].
    Leaf(u32),
    /// The packet matches the pattern.
    Match,
    /// It does not.
    Mismatch,
}

/// A constant or a test of a pattern, and the continuation for each result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf {
    pub(crate) expr: Expr,
    pub(crate) yes: Next,
    pub(crate) no: Next,
}

/// A condition on packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Flat, so that no depth of nesting can exhaust the stack; the last node is the root.
    pub(crate) nodes: Vec<Expr>,
    /// Warnings, such as relations that always hold.
    pub(crate) warnings: Vec<RuleError>,
}

impl Pattern {
    /// The pattern that matches every packet.
    pub fn all() -> Self {
        Pattern { nodes: vec![Expr::Const(true, Word::FIRST)], warnings: Vec::new() }
    }

    /// The pattern that matches no packet.
    pub fn none() -> Self {
        Pattern { nodes: vec![Expr::Const(false, Word::FIRST)], warnings: Vec::new() }
    }

    /// Warnings, such as relations that always hold.
    pub fn warnings(&self) -> &[RuleError] {
        &self.warnings
    }

    /// The leaves in the order in which they are evaluated; operands precede their operator.
    pub(crate) fn leaves(&self) -> Vec<Leaf> {
        // Bottom up: the first leaf of each subexpression.
        let mut entry: Vec<Next> = Vec::with_capacity(self.nodes.len());
        let mut leaves = Vec::new();
        for expr in &self.nodes {
            entry.push(match *expr {
                Expr::Const(..) | Expr::Test { .. } => {
                    leaves.push(Leaf { expr: *expr, yes: Next::Match, no: Next::Mismatch });
                    Next::Leaf(leaves.len() as Id - 1)
                }
                Expr::Not(a) | Expr::And(a, _) | Expr::Or(a, _) | Expr::Cond(a, ..) => {
                    entry[a as usize]
                }
            });
        }
        // Top down: the continuations of each subexpression.
        let mut leads = vec![(Next::Match, Next::Mismatch); self.nodes.len()];
        for (at, expr) in self.nodes.iter().enumerate().rev() {
            let (yes, no) = leads[at];
            match *expr {
                Expr::Const(..) | Expr::Test { .. } => {
                    if let Next::Leaf(leaf) = entry[at] {
                        leaves[leaf as usize] = Leaf { expr: *expr, yes, no };
                    }
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
        leaves
    }

    /// The subexpression of a node, whose operands start at `first`.
    pub(crate) fn part(&self, first: usize, node: usize) -> Pattern {
        let id = |id: Id| id - first as Id;
        let nodes = self.nodes[first..=node].iter().map(|expr| match *expr {
            leaf @ (Expr::Const(..) | Expr::Test { .. }) => leaf,
            Expr::Not(a) => Expr::Not(id(a)),
            Expr::And(a, b) => Expr::And(id(a), id(b)),
            Expr::Or(a, b) => Expr::Or(id(a), id(b)),
            Expr::Cond(a, b, c) => Expr::Cond(id(a), id(b), id(c)),
        });
        Pattern { nodes: nodes.collect(), warnings: Vec::new() }
    }

    pub(crate) fn empty() -> Self {
        Pattern { nodes: Vec::new(), warnings: Vec::new() }
    }

    pub(crate) fn push(&mut self, node: Expr) -> Id {
        self.nodes.push(node);
        self.nodes.len() as Id - 1
    }

    pub(crate) fn test(&mut self, test: Test, negated: bool) -> Id {
        self.test_in_form(test, negated, Form::Value)
    }

    pub(crate) fn test_in_form(&mut self, test: Test, negated: bool, form: Form) -> Id {
        if test.mask == 0 {
            let word = Word { base: test.base, offset: test.offset };
            return self.push(Expr::Const((test.lo == 0) != negated, word));
        }
        self.push(Expr::Test { test, negated, form })
    }

    pub(crate) fn not(&mut self, a: Id, really: bool) -> Id {
        if really { self.push(Expr::Not(a)) } else { a }
    }

    pub(crate) fn and(&mut self, a: Option<Id>, b: Id) -> Id {
        a.map_or(b, |a| self.push(Expr::And(a, b)))
    }

    pub(crate) fn or(&mut self, a: Option<Id>, b: Id) -> Id {
        a.map_or(b, |a| self.push(Expr::Or(a, b)))
    }
}
