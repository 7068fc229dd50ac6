//! Rules test by test, for who runs them by other means.

use super::graph::{DROP, Graph, OUT, Target};
use super::pattern::Test;
use super::program::Rule;

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

/// Rules as tests, whatever those would take a packet.
#[derive(Clone, Debug)]
pub struct Steps(Graph);

impl Steps {
    /// The tests of `rules`, of which the first that matches a packet decides.
    pub fn compile(rules: &[Rule]) -> Steps {
        Steps(Graph::of_outputs(rules.iter()))
    }

    /// Where they begin.
    pub fn start(&self) -> Next {
        self.0.start.into()
    }

    /// The tests. Branches only lead forward.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Step> {
        self.0.nodes.iter().map(|node| Step {
            test: node.test,
            yes: node.yes.into(),
            no: node.no.into(),
            short: node.branch(node.short_yes).into(),
        })
    }
}
