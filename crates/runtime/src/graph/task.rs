//! Tasks that a graph needs.

/// The kind of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TaskKind {
    /// Has a source produce, and pushes the packets.
    Source(usize),
    /// Pulls an input of a sink, and pushes the packets into it.
    Sink {
        /// The sink.
        node: usize,
        /// Its pull input.
        input: usize,
    },
    /// Takes packets out of a store whose output pushes, and pushes them.
    Store(usize),
}

impl TaskKind {
    /// Its verb, for `explain`.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            TaskKind::Source(_) => "asks",
            TaskKind::Sink { .. } => "pulls for",
            TaskKind::Store(_) => "empties",
        }
    }

    /// Its element.
    pub(crate) fn element(self) -> usize {
        match self {
            TaskKind::Source(node) | TaskKind::Sink { node, .. } | TaskKind::Store(node) => node,
        }
    }
}

/// A task of some worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskRef {
    /// Index of the worker.
    pub worker: usize,
    /// Index of the task among those of the worker.
    pub task: usize,
}
