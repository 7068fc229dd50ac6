//! Rules as a list of tests, for callers that run them by other means.

use super::graph::{DROP, Graph, OUT, Target};
use super::pattern::Test;
use super::program::Rule;

/// The target of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// The step of this number, which is higher than that of the current step.
    Step(usize),
    /// The packet goes to this output.
    Output(u8),
    /// The packet is dropped.
    Drop,
}

impl From<Target> for Branch {
    fn from(target: Target) -> Branch {
        match target {
            DROP => Branch::Drop,
            step @ 0..OUT => Branch::Step(step as usize),
            output => Branch::Output((output - OUT) as u8),
        }
    }
}

/// A test and the targets of its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The test.
    pub test: Test,
    /// The target of packets that pass it.
    pub yes: Branch,
    /// The target of packets that do not pass it.
    pub no: Branch,
    /// The target of packets that are too short for it.
    pub short: Branch,
}

/// Rules compiled to tests, whatever their cost.
#[derive(Clone, Debug)]
pub struct Steps(Graph);

impl Steps {
    /// Compiles `rules`, of which the first that matches a packet decides.
    pub fn compile(rules: &[Rule]) -> Steps {
        Steps(Graph::from_rules(rules.iter()))
    }

    /// The first step.
    pub fn start(&self) -> Branch {
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
