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

/// An index of [`Pattern::nodes`].
pub(crate) type Id = u32;

/// One node of an expression; its operands precede it in the vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    Const(bool),
    /// The test, or (`negated`) its opposite; both are false for a short packet.
    Test {
        test: Test,
        negated: bool,
    },
    Not(Id),
    And(Id, Id),
    Or(Id, Id),
    /// If the first holds then the second, else the third.
    Cond(Id, Id, Id),
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
        Pattern { nodes: vec![Expr::Const(true)], warnings: Vec::new() }
    }

    /// The pattern that matches no packet.
    pub fn none() -> Self {
        Pattern { nodes: vec![Expr::Const(false)], warnings: Vec::new() }
    }

    /// Warnings, such as relations that always hold.
    pub fn warnings(&self) -> &[RuleError] {
        &self.warnings
    }

    /// The subexpression of a node, whose operands start at `first`.
    pub(crate) fn part(&self, first: usize, node: usize) -> Pattern {
        let id = |id: Id| id - first as Id;
        let nodes = self.nodes[first..=node].iter().map(|expr| match *expr {
            leaf @ (Expr::Const(_) | Expr::Test { .. }) => leaf,
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
        if test.mask == 0 {
            return self.push(Expr::Const((test.lo == 0) != negated));
        }
        self.push(Expr::Test { test, negated })
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
