//! Where lies what few connections have.

use super::mapping::Shifts;
use std::num::NonZeroU32;

/// By how much numbers are shifted in packets of connections, by number.
#[derive(Default)]
pub(super) struct Shelf {
    all: Vec<Shifts>,
    free: Vec<NonZeroU32>,
}

impl Shelf {
    /// Puts something on it; nothing, if there is nothing that shifts.
    pub(super) fn put(&mut self, shifts: Shifts) -> Option<NonZeroU32> {
        if shifts == Shifts::default() {
            return None;
        }
        if let Some(number) = self.free.pop() {
            self.all[number.get() as usize - 1] = shifts;
            return Some(number);
        }
        self.all.push(shifts);
        NonZeroU32::new(self.all.len() as u32)
    }

    /// What is there.
    pub(super) fn get(&self, number: Option<NonZeroU32>) -> Shifts {
        let at = number.map(|number| number.get() as usize - 1);
        at.and_then(|at| self.all.get(at)).copied().unwrap_or_default()
    }

    /// Takes it away.
    pub(super) fn take(&mut self, number: Option<NonZeroU32>) {
        self.free.extend(number);
    }
}
