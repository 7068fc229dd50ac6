//! The progress of a tenant's move, as clients see it.

use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// A phase of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MovePhase {
    /// The other instance is connected to, and prepares the configuration.
    #[default]
    Offer,
    /// Tables are copied while the tenant goes on.
    Copy,
    /// The tenant stands still.
    Stop,
    /// The tenant runs at the other instance.
    Done,
    /// The tenant runs here as before.
    Failed,
    /// The connection broke when the tenant was handed over: it is held here, and may run there.
    Unknown,
}

/// The progress of a move.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct MoveProgress {
    pub(crate) tenant: String,
    /// The other instance's address.
    pub(crate) to: String,
    pub(crate) phase: MovePhase,
    /// Rounds of copying while the tenant went on.
    pub(crate) rounds: u32,
    /// Records that were sent, in all rounds.
    pub(crate) records: u64,
    /// Of these, those that were sent while the tenant stood still.
    pub(crate) last_records: u64,
    /// Bytes that went over the connection.
    pub(crate) bytes: u64,
    /// Time since the beginning, in seconds.
    pub(crate) seconds: f64,
    /// Time for which the tenant stood still, in seconds.
    pub(crate) stop_seconds: Option<f64>,
    /// Elements whose state does not move, with their classes.
    pub(crate) anew: Vec<(String, String)>,
    /// State that could not be put in place: elements, each with a reason.
    pub(crate) lost: Vec<(String, String)>,
    /// The reason of a failure.
    pub(crate) error: Option<String>,
}

impl MoveProgress {
    /// Whether the move is over.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, MovePhase::Done | MovePhase::Failed | MovePhase::Unknown)
    }
}

/// A progress that the thread of the move and the control thread share.
#[derive(Clone, Default)]
pub(super) struct SharedProgress(Arc<Mutex<MoveProgress>>);

impl SharedProgress {
    pub(super) fn change(&self, change: impl FnOnce(&mut MoveProgress)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn get(&self) -> MoveProgress {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
