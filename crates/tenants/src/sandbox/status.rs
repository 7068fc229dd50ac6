//! The state of a tenant's process, for handlers and messages.

use super::Protection;
use std::fmt;

/// The state of a tenant's process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ProcessState {
    /// It is being started, and takes no packets yet.
    #[default]
    Starting,
    /// It runs.
    Running,
    /// It has ended, and is started again after a pause.
    Waiting,
    /// It has ended, and is not started again: it lacks a protection that the system file requires.
    Refused,
}

impl fmt::Display for ProcessState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProcessState::Starting => "starting",
            ProcessState::Running => "running",
            ProcessState::Waiting => "waiting",
            ProcessState::Refused => "refused",
        })
    }
}

/// The state of a tenant's process, and its past.
#[derive(Clone, Debug, Default)]
pub struct ProcessStatus {
    /// Its state.
    pub state: ProcessState,
    /// Its number, while there is one.
    pub pid: Option<u32>,
    /// Number of starts.
    pub starts: u64,
    /// The reason of its last end, in words; empty if it has never ended.
    pub last_end: String,
    /// A sentence about its confinement.
    pub confinement: String,
    /// Protections that the kernel does not give, each with the reason.
    pub lacking: Vec<(Protection, String)>,
}
