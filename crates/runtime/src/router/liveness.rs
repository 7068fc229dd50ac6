//! Whether workers still make turns, without waiting for one that does not.

use super::Router;
use std::sync::mpsc::{Receiver, TryRecvError};

/// A question to all workers, each of which answers between two bursts.
pub struct LivenessProbe {
    /// By worker, of those that have not answered yet.
    replies: Vec<Receiver<()>>,
    /// Whether a worker was lost, whose answer will never come.
    is_lost: bool,
}

impl LivenessProbe {
    /// Whether every worker has made a turn since the probe was sent.
    pub fn is_answered(&mut self) -> bool {
        self.replies.retain(|reply| match reply.try_recv() {
            Ok(()) => false,
            Err(TryRecvError::Empty) => true,
            Err(TryRecvError::Disconnected) => {
                self.is_lost = true;
                false
            }
        });
        self.replies.is_empty() && !self.is_lost
    }
}

impl Router {
    /// Asks all workers for a turn. A sleeping worker wakes up to answer; workers that are not on
    /// threads are not asked.
    pub fn probe_liveness(&self) -> LivenessProbe {
        LivenessProbe { replies: self.workers.probe(), is_lost: false }
    }
}
