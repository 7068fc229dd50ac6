//! Handlers and reasons to drop that one element has beside those of its class.

use crate::fate::LossReason;

/// Handlers and reasons to drop that an element declares because of its arguments: those of a module
/// that it runs, for example. They stand beside those of its class, whose names come first.
#[derive(Clone, Debug, Default)]
pub struct ElementDeclarations {
    /// Reasons to drop, each with the index of its fate.
    pub reasons: Vec<(u8, LossReason)>,
    /// Names of read handlers.
    pub reads: Vec<String>,
    /// Names of write handlers.
    pub writes: Vec<String>,
}

impl ElementDeclarations {
    /// Whether there is a handler of that name.
    pub fn has_handler(&self, name: &str, write: bool) -> bool {
        let names = if write { &self.writes } else { &self.reads };
        names.iter().any(|it| it == name)
    }

    /// The handlers, each with whether it is written to.
    pub fn handlers(&self) -> impl Iterator<Item = (&str, bool)> {
        let reads = self.reads.iter().map(|name| (name.as_str(), false));
        reads.chain(self.writes.iter().map(|name| (name.as_str(), true)))
    }
}
