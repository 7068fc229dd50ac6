//! Faults of a module while packets flow, and how long it is then left alone.

use castanet_element::time::Time;
use std::fmt;
use std::time::Duration;

/// Faults in a row after which a module is cut off.
pub const FIRST_FAULTS: u32 = 3;
/// Batches without a fault after which earlier faults no longer count.
const GOOD_BATCHES: u32 = 1024;
/// How long a module is cut off first; each further fault doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// How often that is doubled: up to nearly two minutes.
const MOST_DOUBLINGS: u32 = 10;

/// Fault of a module in one call. It costs the packets of that call, and the module's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The module trapped.
    Trap(String),
    /// The call reached a limit: of instructions, of memory or of the stack.
    Limit(String),
    /// The module's answer makes no sense.
    Answer(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Trap(why) => write!(f, "the module trapped: {why}"),
            Fault::Limit(why) => write!(f, "the module reached a limit: {why}"),
            Fault::Answer(why) => write!(f, "the module's answer is malformed: {why}"),
        }
    }
}

/// Faults of a module in a row, and until when it is left alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultHistory {
    in_a_row: u32,
    good_batches: u32,
    cut_off_until: Option<Time>,
}

impl FaultHistory {
    /// Notes a batch without a fault.
    #[inline]
    pub(crate) fn note_good_batch(&mut self) {
        if self.in_a_row > 0 {
            self.good_batches += 1;
            if self.good_batches >= GOOD_BATCHES {
                *self = FaultHistory::default();
            }
        }
    }

    /// Notes a fault; returns how long the module is cut off because of it.
    pub(crate) fn note_fault(&mut self, now: Time) -> Option<Duration> {
        self.good_batches = 0;
        self.in_a_row = self.in_a_row.saturating_add(1);
        let beyond = self.in_a_row.checked_sub(FIRST_FAULTS)?;
        let pause = FIRST_PAUSE * (1 << beyond.min(MOST_DOUBLINGS));
        self.cut_off_until = Some(now + pause);
        Some(pause)
    }

    /// Whether the module is cut off.
    pub(crate) fn is_cut_off(&self, now: Time) -> bool {
        self.cut_off_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_good_batches_end_them() {
        let mut history = FaultHistory::default();
        let now = Time(1_000_000_000);
        assert_eq!([(); 2].map(|()| history.note_fault(now)), [None; 2]);
        assert!(!history.is_cut_off(now));
        assert_eq!(history.note_fault(now), Some(FIRST_PAUSE));
        assert!(history.is_cut_off(now) && !history.is_cut_off(now + FIRST_PAUSE));
        assert_eq!(history.note_fault(now), Some(FIRST_PAUSE * 2));
        (0..20).for_each(|_| _ = history.note_fault(now));
        assert_eq!(history.note_fault(now), Some(FIRST_PAUSE * 1024));
        // A module that fails once in a while is cut off, too.
        (1..GOOD_BATCHES).for_each(|_| history.note_good_batch());
        assert!(history.note_fault(now).is_some());
        (0..GOOD_BATCHES).for_each(|_| history.note_good_batch());
        assert_eq!(history.note_fault(now), None);
    }
}
