//! The queue of packets for which a device has no room yet.

use crate::device::Device;
use castanet_element::prelude::*;
use std::time::Instant;

/// The time until packets are offered again to a device that had no room.
const RETRY: Duration = Duration::from_micros(100);

/// The time for which a worker blocks, once, on a device that takes nothing: a link
/// that is down must not stop the worker.
const MAX_BLOCK: Duration = Duration::from_millis(100);

/// Packets that a device has no room for yet.
#[derive(Default)]
pub(super) struct TxQueue {
    packets: Batch,
    /// Whether a worker has blocked for `MAX_BLOCK`, and the device has taken nothing since.
    stalled: bool,
    /// Packets that were dropped since the last reset.
    pub(super) dropped: u64,
}

/// The packets that may wait for a device.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Number of packets.
    pub(super) limit: usize,
    /// Whether a worker with more packets blocks until the device takes them, instead of dropping
    /// them; only once for a device that takes nothing.
    pub(super) blocking: bool,
}

#[handlers]
impl TxQueue {
    /// Packets dropped, since the last reset if there was one.
    #[read]
    fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The same as `dropped`.
    #[read]
    fn n_dropped(&self) -> u64 {
        self.dropped
    }
}

/// The result of sending a burst.
pub(super) struct TxResult {
    /// Number of packets that the device took.
    sent: usize,
    /// Number of packets that the device refused for good.
    pub(super) refused: usize,
    /// The error for which it took no more; `None` if it had no room.
    pub(super) error: Option<std::io::Error>,
}

impl TxQueue {
    /// Sends the packets that wait, then `batch`, and counts those that the device took or refused.
    /// Of those that it did not take, as many wait as there is `room` for, and the others leave by
    /// the second of `exits`; refused ones are counted at the first.
    pub(super) fn send<F: Fate>(
        &mut self,
        device: &mut dyn Device,
        mut batch: Batch,
        room: Room,
        (refused, full): (F, F),
        cx: &mut Cx,
    ) -> TxResult {
        let max_block = room.blocking.then_some(MAX_BLOCK);
        let outcome = self.transmit_all(device, &mut batch, room.limit, max_block);
        if outcome.error.is_none() {
            self.schedule_retry(device, cx);
        }
        cx.count_consumed(outcome.sent);
        if outcome.refused + batch.len() > 0 {
            self.dropped += outcome.refused as u64;
            cx.count_dropped(refused, outcome.refused);
            self.drop_batch(batch, full, cx);
        }
        outcome
    }

    /// Drops packets that cannot wait, and counts them.
    pub(super) fn drop_batch<F: Fate>(&mut self, batch: Batch, exit: F, cx: &mut Cx) {
        self.dropped += batch.len() as u64;
        cx.emit_batch(exit, batch);
    }

    /// Drops the packets that wait.
    pub(super) fn discard<F: Fate>(&mut self, exit: F, cx: &mut Cx) {
        let rest = std::mem::take(&mut self.packets);
        self.drop_batch(rest, exit, cx);
    }

    /// Sets a timer to send again if packets wait, here or in the device.
    pub(super) fn schedule_retry(&self, device: &dyn Device, cx: &mut Cx) {
        if !self.packets.is_empty() || device.unsent() {
            let retry = cx.now() + RETRY;
            cx.set_timer(retry);
        }
    }

    /// [`TxQueue::send`] without the timer; the worker blocks on a device that takes nothing for
    /// at most `max_block`, or not at all.
    fn transmit_all(
        &mut self,
        device: &mut dyn Device,
        batch: &mut Batch,
        limit: usize,
        max_block: Option<Duration>,
    ) -> TxResult {
        if !self.packets.is_empty() {
            self.packets.append(batch);
            std::mem::swap(&mut self.packets, batch);
        }
        // All packets are in `batch` now, the oldest first.
        let (before, mut sent, mut since) = (batch.len(), 0, None);
        let mut error = None;
        loop {
            match device.transmit(batch) {
                Ok(0) => {}
                Ok(taken) => {
                    sent += taken;
                    self.stalled = false;
                    since = None;
                }
                Err(cause) => error = Some(cause),
            }
            error = error.or(device.flush().err());
            let Some(max_block) = max_block.filter(|_| error.is_none()) else { break };
            if self.stalled || batch.len() <= limit {
                break;
            }
            if since.get_or_insert_with(Instant::now).elapsed() > max_block {
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

    /// Number of packets that wait.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceStats;
    use castanet_packet::{Pool, PoolConfig};
    use std::io;
    use std::os::fd::RawFd;

    /// A device that takes one packet at every `every`th call, or none.
    struct SlowDevice {
        every: Option<usize>,
        calls: usize,
        /// Number of calls after which its link is down.
        until_error: usize,
    }

    impl Device for SlowDevice {
        fn receive(&mut self, _: &Pool, _: &mut Batch, _: usize) -> io::Result<usize> {
            Ok(0)
        }

        fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize> {
            if self.calls == self.until_error {
                return Err(io::ErrorKind::NetworkDown.into());
            }
            self.calls += 1;
            if self.every.is_none_or(|every| !self.calls.is_multiple_of(every)) {
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
    fn worker_blocks_on_a_slow_device_but_only_once_on_one_that_takes_nothing() {
        let pool = Pool::new(PoolConfig { frames: 64, ..PoolConfig::default() }).unwrap();
        let mut waiting = TxQueue::default();
        let day = Some(Duration::from_secs(86400));
        // The device takes a packet at every fifth call: 18 of 20 take 90 calls, two may wait.
        let mut slow = SlowDevice { every: Some(5), calls: 0, until_error: usize::MAX };
        let mut batch = packets(&pool, 20);
        let done = waiting.transmit_all(&mut slow, &mut batch, 2, day);
        assert_eq!((done.sent, done.refused, batch.len(), waiting.len()), (18, 0, 0, 2));
        assert_eq!(slow.calls, 90);
        // A worker that does not block calls the device once.
        let mut batch = packets(&pool, 3);
        let done = waiting.transmit_all(&mut slow, &mut batch, 2, None);
        assert_eq!((done.sent, batch.len(), waiting.len(), slow.calls), (0, 3, 2, 91));
        // A worker blocks once on a device that takes nothing, and not again.
        let mut dead = SlowDevice { every: None, calls: 0, until_error: usize::MAX };
        let short = Some(Duration::from_millis(1));
        let mut batch = packets(&pool, 4);
        let done = waiting.transmit_all(&mut dead, &mut batch, 2, short);
        assert_eq!((done.sent, batch.len(), waiting.len()), (0, 4, 2));
        let calls = dead.calls;
        assert!(calls > 1);
        let mut batch = packets(&pool, 4);
        let done = waiting.transmit_all(&mut dead, &mut batch, 2, day);
        assert_eq!((done.sent, batch.len(), dead.calls), (0, 4, calls + 1));
        // The device takes a packet: the worker may block again.
        let mut batch = packets(&pool, 0);
        let done = waiting.transmit_all(&mut slow, &mut batch, 0, day);
        assert_eq!((done.sent, waiting.len()), (0, 0));
        assert_eq!(batch.len(), 2);
        slow.calls = 4;
        let mut batch = packets(&pool, 9);
        let done = waiting.transmit_all(&mut slow, &mut batch, 0, day);
        assert_eq!((done.sent, batch.len(), waiting.len()), (9, 0, 0));
    }

    #[test]
    fn packets_sent_before_an_error_are_counted_and_at_most_limit_wait() {
        let pool = Pool::new(PoolConfig { frames: 64, ..PoolConfig::default() }).unwrap();
        let mut waiting = TxQueue::default();
        let mut down = SlowDevice { every: Some(1), calls: 0, until_error: 3 };
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
