//! A program test by test, for who runs it by other means.

use super::graph::{DROP, OUT, Target};
use super::pattern::Test;
use super::program::Program;

/// Where a program goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At the step of this number, which is higher than any before it.
    Step(usize),
    /// The packet goes to this output.
    Output(u8),
    /// The packet is dropped.
    Drop,
}

impl From<Target> for Next {
    fn from(target: Target) -> Next {
        match target {
            DROP => Next::Drop,
            step @ 0..OUT => Next::Step(step as usize),
            output => Next::Output((output - OUT) as u8),
        }
    }
}

/// One test, and where its answers lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The test.
    pub test: Test,
    /// Where packets go that pass it.
    pub yes: Next,
    /// Where the others go.
    pub no: Next,
    /// Where packets go that are too short for it.
    pub short: Next,
}

impl Program {
    /// Where the program begins.
    pub fn start(&self) -> Next {
        self.graph.start.into()
    }

    /// Its tests. Branches only lead forward.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = Step> {
        self.graph.nodes.iter().map(|node| Step {
            test: node.test,
            yes: node.yes.into(),
            no: node.no.into(),
            short: node.branch(node.short_yes).into(),
        })
    }
}
