//! Sequence number offsets of the few connections that have any.

use super::mapping::Offsets;
use std::num::NonZeroU32;

/// Offsets by index.
#[derive(Default)]
pub(super) struct SeqOffsets {
    entries: Vec<Offsets>,
    free: Vec<NonZeroU32>,
}

impl SeqOffsets {
    /// Stores offsets; returns `None` if all are zero.
    pub(super) fn insert(&mut self, offsets: Offsets) -> Option<NonZeroU32> {
        if offsets == Offsets::default() {
            return None;
        }
        if let Some(number) = self.free.pop() {
            self.entries[number.get() as usize - 1] = offsets;
            return Some(number);
        }
        self.entries.push(offsets);
        NonZeroU32::new(self.entries.len() as u32)
    }

    /// Returns the offsets at an index; zeros without one.
    pub(super) fn get(&self, number: Option<NonZeroU32>) -> Offsets {
        let at = number.map(|number| number.get() as usize - 1);
        at.and_then(|at| self.entries.get(at)).copied().unwrap_or_default()
    }

    /// Frees an index.
    pub(super) fn remove(&mut self, number: Option<NonZeroU32>) {
        self.free.extend(number);
    }
}
