//! A pattern as parsed: an expression over tests of masked words, flat in one vector.

use super::error::RuleError;

/// Where a test's offset counts from.
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
    /// What the offset counts from.
    pub base: Base,
    /// A multiple of four.
    pub offset: u16,
    /// The bits that matter.
    pub mask: u32,
    /// The least that is accepted.
    pub lo: u32,
    /// The most.
    pub hi: u32,
}

impl Test {
    pub(crate) fn equal(base: Base, offset: u16, mask: u32, value: u32) -> Self {
        Test { base, offset, mask, lo: value & mask, hi: value & mask }
    }

    /// Bytes the header must have for the test to be answered: up to the last masked one.
    pub fn needs(&self) -> u16 {
        self.offset + 4 - (self.mask.trailing_zeros() / 8) as u16
    }

    /// Whether one value is accepted.
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

/// A place in [`Pattern`]'s vector.
pub(crate) type Id = u32;

/// One node; operands stand before it in the vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    Const(bool),
    /// The test, or (`negated`) its opposite; either is false on a short packet.
    Test {
        test: Test,
        negated: bool,
    },
    Not(Id),
    And(Id, Id),
    Or(Id, Id),
    /// If the first then the second, else the third.
    Cond(Id, Id, Id),
}

/// What a packet must look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Flat, so that no depth of nesting can exhaust the stack; the last node is the root.
    pub(crate) nodes: Vec<Expr>,
    /// Oddities that are no errors, such as relations that always hold.
    pub(crate) warnings: Vec<RuleError>,
}

impl Pattern {
    /// The pattern of every packet.
    pub fn all() -> Self {
        Pattern { nodes: vec![Expr::Const(true)], warnings: Vec::new() }
    }

    /// The pattern of no packet.
    pub fn none() -> Self {
        Pattern { nodes: vec![Expr::Const(false)], warnings: Vec::new() }
    }

    /// Oddities that are no errors, such as relations that always hold.
    pub fn warnings(&self) -> &[RuleError] {
        &self.warnings
    }

    /// A node and what it is made of, from `first` on.
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
