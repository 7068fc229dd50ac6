//! Timers of a worker: at most one for each holder.

use crate::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Times by holder (an element, or a task), the earliest first; at most one for each holder.
pub struct Timers {
    at: Vec<Option<Time>>,
    heap: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Timers {
    /// No times, for that many holders.
    pub fn new(holders: usize) -> Timers {
        Timers { at: vec![None; holders], heap: BinaryHeap::new() }
    }

    /// Sets the time of a holder, in place of an earlier one.
    pub fn set(&mut self, holder: usize, time: Time) {
        if self.at[holder] != Some(time) {
            self.at[holder] = Some(time);
            self.heap.push(Reverse((time, holder)));
        }
    }

    /// Removes the time of a holder.
    pub fn cancel(&mut self, holder: usize) {
        self.at[holder] = None;
    }

    /// The time of a holder.
    pub fn of(&self, holder: usize) -> Option<Time> {
        self.at[holder]
    }

    /// Removes and returns the time of a holder.
    pub fn take(&mut self, holder: usize) -> Option<Time> {
        self.at[holder].take()
    }

    /// The earliest time.
    pub fn earliest(&mut self) -> Option<Time> {
        while let Some(&Reverse((time, holder))) = self.heap.peek() {
            if self.at[holder] == Some(time) {
                return Some(time);
            }
            self.heap.pop();
        }
        None
    }

    /// Removes one time that is due and returns its holder.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<usize> {
        match self.heap.peek() {
            Some(&Reverse((time, _))) if time <= now => self.pop_earliest(now),
            _ => None,
        }
    }

    /// As [`Timers::pop`], behind times that were cancelled.
    fn pop_earliest(&mut self, now: Time) -> Option<usize> {
        if self.earliest()? > now {
            return None;
        }
        let Reverse((_, holder)) = self.heap.pop()?;
        self.at[holder] = None;
        Some(holder)
    }
}
