//! What elements that send have in common: packets that wait for room.

use crate::device::Device;
use castanet_engine::prelude::*;
use std::time::Instant;

/// How soon a device without room is tried again.
const RETRY: Duration = Duration::from_micros(100);

/// How long a worker waits for room, once: a link that is down must not stop it.
const PATIENCE: Duration = Duration::from_millis(100);

/// Packets that a device has no room for yet.
#[derive(Default)]
pub(super) struct Waiting {
    packets: Batch,
    /// Whether a worker waited in vain, and nothing has gone since.
    stuck: bool,
}

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
    /// With `blocking` the worker waits until there are no more, but not again
    /// and again for a device that takes nothing.
    pub(super) fn send(
        &mut self,
        device: &mut dyn Device,
        mut batch: Batch,
        limit: usize,
        blocking: bool,
        cx: &mut Cx,
    ) -> std::io::Result<Outcome> {
        if !self.packets.is_empty() {
            self.packets.append(&mut batch);
            std::mem::swap(&mut self.packets, &mut batch);
        }
        // Nothing waits now: all are in `batch`.
        let (before, mut sent, mut since) = (batch.len(), 0, None);
        loop {
            match device.transmit(&mut batch).and_then(|n| device.flush().map(|()| n)) {
                Ok(went) => {
                    sent += went;
                    self.stuck &= went == 0;
                }
                Err(error) => {
                    self.packets = batch;
                    return Err(error);
                }
            }
            if !blocking || self.stuck || batch.len() <= limit {
                break;
            }
            if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                self.stuck = true;
                break;
            }
            std::thread::yield_now();
        }
        let refused = before - sent - batch.len();
        if batch.is_empty() && !device.unsent() {
            return Ok(Outcome { sent, refused, surplus: batch });
        }
        let surplus = batch.split_off(limit);
        self.packets = batch;
        let retry = cx.now() + RETRY;
        cx.wake_at(retry);
        Ok(Outcome { sent, refused, surplus })
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Gives up those that still wait.
    pub(super) fn take(&mut self) -> Batch {
        std::mem::take(&mut self.packets)
    }
}
