//! What elements that send have in common: packets that wait for room.

use crate::device::Device;
use castanet_element::prelude::*;
use std::time::Instant;

/// How soon a device without room is tried again.
const RETRY: Duration = Duration::from_micros(100);

/// How long a worker waits for a device that takes nothing, once: a link that
/// is down must not stop it.
const PATIENCE: Duration = Duration::from_millis(100);

/// Packets that a device has no room for yet.
#[derive(Default)]
pub(super) struct TxQueue {
    packets: Batch,
    /// Whether a worker waited in vain, and nothing has gone since.
    stalled: bool,
}

/// What became of packets given to a device.
pub(super) struct TxResult {
    /// How many it took.
    pub(super) sent: usize,
    /// How many it will never take.
    pub(super) refused: usize,
    /// Why it took no more, if that was not for want of room.
    pub(super) error: Option<std::io::Error>,
}

impl TxQueue {
    /// Sends `batch` after what waits already; up to `limit` packets wait on, and the rest, which
    /// found no place to wait, is left in `batch`. With `blocking` the worker waits until there are
    /// no more, but not again and again for a device that takes nothing.
    pub(super) fn send(
        &mut self,
        device: &mut dyn Device,
        batch: &mut Batch,
        limit: usize,
        blocking: bool,
        cx: &mut Cx,
    ) -> TxResult {
        let outcome = self.transmit_all(device, batch, limit, blocking.then_some(PATIENCE));
        if outcome.error.is_none() {
            self.schedule_retry(device, cx);
        }
        outcome
    }

    /// Sees to it that what waits, here or in the device, is tried again.
    pub(super) fn schedule_retry(&self, device: &dyn Device, cx: &mut Cx) {
        if !self.packets.is_empty() || device.unsent() {
            let retry = cx.now() + RETRY;
            cx.set_timer(retry);
        }
    }

    /// As [`TxQueue::send`], without a timer to try again what waits; with `patience` the worker
    /// waits so long for a device that takes nothing.
    fn transmit_all(
        &mut self,
        device: &mut dyn Device,
        batch: &mut Batch,
        limit: usize,
        patience: Option<Duration>,
    ) -> TxResult {
        if !self.packets.is_empty() {
            self.packets.append(batch);
            std::mem::swap(&mut self.packets, batch);
        }
        // Nothing waits now: all are in `batch`.
        let (before, mut sent, mut since) = (batch.len(), 0, None);
        let mut error = None;
        loop {
            match device.transmit(batch) {
                Ok(0) => {}
                Ok(went) => {
                    sent += went;
                    self.stalled = false;
                    since = None;
                }
                Err(why) => error = Some(why),
            }
            error = error.or(device.flush().err());
            let Some(patience) = patience.filter(|_| error.is_none()) else { break };
            if self.stalled || batch.len() <= limit {
                break;
            }
            if since.get_or_insert_with(Instant::now).elapsed() > patience {
                self.stalled = true;
                break;
            }
            std::thread::yield_now();
        }
        let refused = before - sent - batch.len();
        if !batch.is_empty() {
            let surplus = batch.split_off(limit);
            self.packets = std::mem::replace(batch, surplus);
        }
        TxResult { sent, refused, error }
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
        /// How often it is asked until its link is down.
        until_error: usize,
    }

    impl Device for Slow {
        fn receive(&mut self, _: &Pool, _: &mut Batch, _: usize) -> io::Result<usize> {
            Ok(0)
        }

        fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize> {
            if self.asked == self.until_error {
                return Err(io::ErrorKind::NetworkDown.into());
            }
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
        let mut waiting = TxQueue::default();
        let day = Some(Duration::from_secs(86400));
        // 20 packets, each asked for five times; two may wait on.
        let mut slow = Slow { every: Some(5), asked: 0, until_error: usize::MAX };
        let mut batch = packets(&pool, 20);
        let done = waiting.transmit_all(&mut slow, &mut batch, 2, day);
        assert_eq!((done.sent, done.refused, batch.len(), waiting.len()), (18, 0, 0, 2));
        assert_eq!(slow.asked, 90);
        // Who does not wait asks once.
        let mut batch = packets(&pool, 3);
        let done = waiting.transmit_all(&mut slow, &mut batch, 2, None);
        assert_eq!((done.sent, batch.len(), waiting.len(), slow.asked), (0, 3, 2, 91));
        // Nothing goes: patience ends, and is not spent again.
        let mut dead = Slow { every: None, asked: 0, until_error: usize::MAX };
        let short = Some(Duration::from_millis(1));
        let mut batch = packets(&pool, 4);
        let done = waiting.transmit_all(&mut dead, &mut batch, 2, short);
        assert_eq!((done.sent, batch.len(), waiting.len()), (0, 4, 2));
        let asked = dead.asked;
        assert!(asked > 1);
        let mut batch = packets(&pool, 4);
        let done = waiting.transmit_all(&mut dead, &mut batch, 2, day);
        assert_eq!((done.sent, batch.len(), dead.asked), (0, 4, asked + 1));
        // Something goes again: so does patience.
        let mut batch = packets(&pool, 0);
        let done = waiting.transmit_all(&mut slow, &mut batch, 0, day);
        assert_eq!((done.sent, waiting.len()), (0, 0));
        assert_eq!(batch.len(), 2);
        slow.asked = 4;
        let mut batch = packets(&pool, 9);
        let done = waiting.transmit_all(&mut slow, &mut batch, 0, day);
        assert_eq!((done.sent, batch.len(), waiting.len()), (9, 0, 0));
    }

    #[test]
    fn what_went_before_an_error_is_counted_and_no_more_than_the_limit_waits() {
        let pool = Pool::new(PoolConfig { frames: 64, ..PoolConfig::default() }).unwrap();
        let mut waiting = TxQueue::default();
        let mut down = Slow { every: Some(1), asked: 0, until_error: 3 };
        let mut batch = packets(&pool, 20);
        let done = waiting.transmit_all(&mut down, &mut batch, 5, Some(Duration::from_secs(86400)));
        assert_eq!((done.sent, done.refused, waiting.len(), batch.len()), (3, 0, 5, 12));
        assert!(done.error.is_some());
        let mut batch = packets(&pool, 2);
        let done = waiting.transmit_all(&mut down, &mut batch, 5, None);
        assert_eq!((done.sent, done.refused, waiting.len(), batch.len()), (0, 0, 5, 2));
        assert!(done.error.is_some());
    }
}
