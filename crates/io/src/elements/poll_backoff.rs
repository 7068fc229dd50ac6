//! How long a worker that polls looks on when nothing comes.

use castanet_element::prelude::*;
use std::ops::RangeInclusive;

/// Since when nothing has come, for a worker that need not look all the time.
#[derive(Default)]
pub(super) struct PollBackoff(Option<Time>);

/// How long to look all the time after a packet came.
const ALERT: Duration = Duration::from_millis(1);

/// How long to sleep between two looks after that: a fraction of the time that
/// nothing came, so that a pause between bursts costs little delay, and a night
/// little power. In the longest nap the descriptors of a queue hold a million
/// packets a second.
const NAP: RangeInclusive<Duration> = Duration::from_micros(50)..=Duration::from_millis(1);
const PART: u32 = 8;

impl PollBackoff {
    /// Nothing has come; whether that has not been so for long.
    pub(super) fn is_short(&mut self, now: Time) -> bool {
        now < *self.0.get_or_insert(now) + ALERT
    }

    /// Nothing has come; when to look again.
    pub(super) fn longer(&mut self, now: Time, busy: bool) -> NextRun {
        if busy || self.is_short(now) {
            return NextRun::Again;
        }
        let since = *self.0.get_or_insert(now);
        let nap = (now - since) / PART;
        NextRun::At(now + nap.clamp(*NAP.start(), *NAP.end()))
    }

    /// Something has come.
    pub(super) fn over(&mut self) {
        self.0 = None;
    }
}
