//! What elements that send have in common: packets that wait for room.

use crate::device::Device;
use castanet_engine::prelude::*;
use std::time::Instant;

/// How soon a device without room is tried again.
const RETRY: Duration = Duration::from_micros(100);

/// How long a worker waits for room: a link that is down must not stop it.
const PATIENCE: Duration = Duration::from_millis(100);

/// Packets that a device has no room for yet.
#[derive(Default)]
pub(super) struct Waiting(Batch);

/// What became of packets given to a device.
pub(super) struct Outcome {
    /// How many it took.
    pub(super) sent: usize,
    /// How many it will never take.
    pub(super) refused: usize,
    /// Those that found no place to wait.
    pub(super) surplus: Batch,
}

impl Waiting {
    /// Sends `batch` after what waits already; up to `limit` packets wait on.
    /// With `blocking` the worker waits until there are no more.
    pub(super) fn send(
        &mut self,
        device: &mut dyn Device,
        mut batch: Batch,
        limit: usize,
        blocking: bool,
        cx: &mut Cx,
    ) -> std::io::Result<Outcome> {
        self.0.append(&mut batch);
        let (before, mut sent, mut since) = (self.0.len(), 0, None);
        loop {
            sent += device.transmit(&mut self.0)?;
            device.flush()?;
            if !blocking || self.0.len() <= limit {
                break;
            }
            if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                break;
            }
            std::thread::yield_now();
        }
        let refused = before - sent - self.0.len();
        let surplus = self.0.split_off(limit);
        if !self.0.is_empty() || device.unsent() {
            let retry = cx.now() + RETRY;
            cx.wake_at(retry);
        }
        Ok(Outcome { sent, refused, surplus })
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Gives up those that still wait.
    pub(super) fn take(&mut self) -> Batch {
        std::mem::take(&mut self.0)
    }
}
