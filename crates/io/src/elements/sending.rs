//! What elements that send have in common: packets that wait for room.

use crate::device::Device;
use castanet_engine::prelude::*;
use std::time::Instant;

/// How soon a device without room is tried again.
const RETRY: Duration = Duration::from_micros(100);

/// How long a worker waits for a device that takes nothing, once: a link that
/// is down must not stop it.
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
        batch: Batch,
        limit: usize,
        blocking: bool,
        cx: &mut Cx,
    ) -> std::io::Result<Outcome> {
        let outcome = self.hand_over(device, batch, limit, blocking.then_some(PATIENCE))?;
        self.try_again(device, cx);
        Ok(outcome)
    }

    /// Sees to it that what waits, here or in the device, is tried again.
    pub(super) fn try_again(&self, device: &dyn Device, cx: &mut Cx) {
        if !self.packets.is_empty() || device.unsent() {
            let retry = cx.now() + RETRY;
            cx.wake_at(retry);
        }
    }

    /// The same, without seeing to it that what waits is tried again; waits
    /// for a device that takes nothing until `patience` is at its end.
    fn hand_over(
        &mut self,
        device: &mut dyn Device,
        mut batch: Batch,
        limit: usize,
        patience: Option<Duration>,
    ) -> std::io::Result<Outcome> {
        if !self.packets.is_empty() {
            self.packets.append(&mut batch);
            std::mem::swap(&mut self.packets, &mut batch);
        }
        // Nothing waits now: all are in `batch`.
        let (before, mut sent, mut since) = (batch.len(), 0, None);
        loop {
            match device.transmit(&mut batch).and_then(|n| device.flush().map(|()| n)) {
                Ok(0) => {}
                Ok(went) => {
                    sent += went;
                    self.stuck = false;
                    since = None;
                }
                Err(error) => {
                    self.packets = batch;
                    return Err(error);
                }
            }
            let Some(patience) = patience else { break };
            if self.stuck || batch.len() <= limit {
                break;
            }
            if since.get_or_insert_with(Instant::now).elapsed() > patience {
                self.stuck = true;
                break;
            }
            std::thread::yield_now();
        }
        let refused = before - sent - batch.len();
        let surplus = if batch.len() > limit { batch.split_off(limit) } else { Batch::new() };
        self.packets = batch;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceStats;
    use castanet_packet::{Pool, PoolConfig};
    use std::io;
    use std::os::fd::RawFd;

    /// Takes a packet each time it has been asked so often, or never.
    struct Slow {
        every: Option<usize>,
        asked: usize,
    }

    impl Device for Slow {
        fn receive(&mut self, _: &Pool, _: &mut Batch, _: usize) -> io::Result<usize> {
            Ok(0)
        }

        fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize> {
            self.asked += 1;
            if self.every.is_none_or(|every| !self.asked.is_multiple_of(every)) {
                return Ok(0);
            }
            Ok(usize::from(!batch.is_empty() && batch.remove(0).len() == 6))
        }

        fn fd(&self) -> Option<RawFd> {
            None
        }

        fn stats(&self) -> DeviceStats {
            DeviceStats::default()
        }

        fn describe(&self) -> String {
            "slow".into()
        }
    }

    fn packets(pool: &Pool, n: usize) -> Batch {
        (0..n).map(|_| pool.copy_in(b"packet").unwrap()).collect()
    }

    #[test]
    fn waits_for_a_slow_device_but_only_once_for_one_that_takes_nothing() {
        let pool = Pool::new(PoolConfig { frames: 64, ..PoolConfig::default() }).unwrap();
        let mut waiting = Waiting::default();
        let day = Some(Duration::from_secs(86400));
        // 20 packets, each asked for five times; two may wait on.
        let mut slow = Slow { every: Some(5), asked: 0 };
        let done = waiting.hand_over(&mut slow, packets(&pool, 20), 2, day).unwrap();
        assert_eq!((done.sent, done.refused, done.surplus.len(), waiting.len()), (18, 0, 0, 2));
        assert_eq!(slow.asked, 90);
        // Who does not wait asks once.
        let done = waiting.hand_over(&mut slow, packets(&pool, 3), 2, None).unwrap();
        assert_eq!((done.sent, done.surplus.len(), waiting.len(), slow.asked), (0, 3, 2, 91));
        // Nothing goes: patience ends, and is not spent again.
        let mut dead = Slow { every: None, asked: 0 };
        let short = Some(Duration::from_millis(1));
        let done = waiting.hand_over(&mut dead, packets(&pool, 4), 2, short).unwrap();
        assert_eq!((done.sent, done.surplus.len(), waiting.len()), (0, 4, 2));
        let asked = dead.asked;
        assert!(asked > 1);
        let done = waiting.hand_over(&mut dead, packets(&pool, 4), 2, day).unwrap();
        assert_eq!((done.sent, done.surplus.len(), dead.asked), (0, 4, asked + 1));
        // Something goes again: so does patience.
        let done = waiting.hand_over(&mut slow, packets(&pool, 0), 0, day).unwrap();
        assert_eq!((done.sent, waiting.len()), (0, 0));
        assert_eq!(done.surplus.len(), 2);
        slow.asked = 4;
        let done = waiting.hand_over(&mut slow, packets(&pool, 9), 0, day).unwrap();
        assert_eq!((done.sent, done.surplus.len(), waiting.len()), (9, 0, 0));
    }
}
