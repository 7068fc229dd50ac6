//! The intervals at which a worker polls a device from which no packets arrive.

use castanet_element::prelude::*;
use std::ops::RangeInclusive;

/// The time of the first poll without packets, if the last poll had none.
#[derive(Default)]
pub(super) struct PollBackoff(Option<Time>);

/// The time for which the worker polls without a pause after a packet.
const STEADY_POLL: Duration = Duration::from_millis(1);

/// The bounds of the sleep between two polls after that. The sleep is a fraction of the
/// time without packets, so that a pause between bursts costs little delay, and a night
/// little power. In the longest sleep the descriptors of a queue hold a million packets
/// a second.
const SLEEP: RangeInclusive<Duration> = Duration::from_micros(50)..=Duration::from_millis(1);
const SLEEP_FRACTION: u32 = 8;

impl PollBackoff {
    /// Records a poll without packets; whether the worker must still poll without a pause.
    pub(super) fn is_short(&mut self, now: Time) -> bool {
        now < *self.0.get_or_insert(now) + STEADY_POLL
    }

    /// Records a poll without packets; the time of the next poll.
    pub(super) fn next_run(&mut self, now: Time, busy: bool) -> NextRun {
        if busy || self.is_short(now) {
            return NextRun::Again;
        }
        let since = *self.0.get_or_insert(now);
        let sleep = (now - since) / SLEEP_FRACTION;
        NextRun::At(now + sleep.clamp(*SLEEP.start(), *SLEEP.end()))
    }

    /// Records a poll with packets.
    pub(super) fn reset(&mut self) {
        self.0 = None;
    }
}
