//! The times that `RecordTimestamp` stores, for `TimestampDiff`.

use castanet_element::prelude::*;

/// Number of times to store with DYNAMIC.
const DYNAMIC_N: usize = 1 << 24;

/// The times of packets by number.
#[derive(Default)]
pub(super) struct TimestampTable {
    /// Nanoseconds since 1970; 0 for none.
    times: Vec<i64>,
    /// Only times of its multiples are stored; 0 stands for 1.
    pub(super) sample: u64,
    pub(super) net_order: bool,
}

impl TimestampTable {
    /// Takes the time of a packet out of the table.
    pub(super) fn take(&mut self, number: u64) -> Option<Time> {
        let at = self.index(number)?;
        let time = self.times.get_mut(at)?;
        Some(Time(std::mem::take(time))).filter(|time| time.0 != 0)
    }

    /// The place of a number's time; `None` if it is not sampled.
    pub(super) fn index(&self, number: u64) -> Option<usize> {
        let sample = self.sample.max(1);
        usize::try_from(number / sample).ok().filter(|_| number.is_multiple_of(sample))
    }

    /// Stores the time of a packet; returns whether the table has room for its number.
    pub(super) fn put(&mut self, number: u64, time: Time, room: usize, dynamic: bool) -> bool {
        let room = if dynamic { room.max(DYNAMIC_N) } else { room };
        let Some(at) = self.index(number).filter(|&at| at < room) else { return false };
        if at >= self.times.len() {
            self.times.resize((at + 1).next_power_of_two().min(room), 0);
        }
        self.times[at] = time.0;
        true
    }
}
