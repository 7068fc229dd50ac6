//! State of `EtherSpanTree`: the tree.

use castanet_element::prelude::*;
use castanet_kit::spanning_tree::{PortState, SpanningTree};

/// The tree, and what the other elements have been told.
#[derive(Default, Local)]
#[local(methods)]
pub struct EtherSpanTreeState {
    pub(super) tree: SpanningTree,
    pub(super) hello: Time,
    pub(super) told: Vec<Option<PortState>>,
    pub(super) told_timeout: Option<Duration>,
}

#[handlers]
impl EtherSpanTreeState {
    /// A line for each port: its number and `block`, `listen`, `learn` or `forward`.
    #[read]
    fn states(&self) -> Value {
        let word = |(port, state)| match state {
            PortState::Blocking => format!("{port} block\n"),
            PortState::Listening => format!("{port} listen\n"),
            PortState::Learning => format!("{port} learn\n"),
            PortState::Forwarding => format!("{port} forward\n"),
        };
        Value::common(self.tree.states().enumerate().map(word).collect::<String>())
    }
    /// A line for each port with its latest message, and one with the best of them: bridge, port, `TC` if the
    /// topology changes, cost, root, and the root's times in seconds, in hexadecimal numbers.
    #[read]
    fn msgs(&self, ask: &ReadRequest) -> Value {
        Value::common(self.tree.listing(ask.now.nanos()))
    }
}
