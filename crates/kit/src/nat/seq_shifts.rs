//! Sequence number shifts of a TCP connection after an element has changed the length of its
//! payload.

use castanet_wire::tcp::precedes;
use serde::{Deserialize, Serialize};

/// Sequence numbers beyond this distance are not ordered: half the range of a comparison.
const MAX_DISTANCE: u32 = 1 << 30;
/// How many shifts of one direction are kept.
const MAX_SHIFTS: usize = 64;

/// All sequence numbers from `from` on are shifted by `by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Shift {
    from: u32,
    by: u32,
}

/// The shifts of one direction, in the sender's sequence numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct DirectionShifts {
    /// The shift of numbers before the first entry.
    base: u32,
    list: Vec<Shift>,
}

/// The shifts of both directions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SeqShifts([DirectionShifts; 2]);

impl SeqShifts {
    /// Adds a shift: bytes that the sender numbers `from` and above arrive `by` later than so far.
    /// A second shift at the same number replaces the first. Returns whether the shift was added;
    /// shifts before the newest one are not.
    pub fn add(&mut self, back: bool, from: u32, by: i32) -> bool {
        let DirectionShifts { base, list } = &mut self.0[usize::from(back)];
        list.pop_if(|last| last.from == from);
        if list.last().is_some_and(|last| precedes(from, last.from)) {
            return false;
        }
        let so_far = list.last().map_or(*base, |last| last.by);
        let shift = Shift { from, by: so_far.wrapping_add_signed(by) };
        if shift.by != so_far {
            list.push(shift);
        }
        if list.len() > MAX_SHIFTS {
            list.remove(0);
        }
        true
    }

    /// The shift of the newest numbers of a direction.
    pub fn last(&self, back: bool) -> Option<i32> {
        let DirectionShifts { base, list } = &self.0[usize::from(back)];
        Some(list.last().map_or(*base, |shift| shift.by) as i32)
    }

    /// Translates a sender's sequence number. A number far beyond the last shift makes that shift
    /// apply to all numbers.
    pub fn seq(&mut self, back: bool, seq: u32) -> u32 {
        let DirectionShifts { base, list } = &mut self.0[usize::from(back)];
        let is_distant =
            |last: &Shift| (MAX_DISTANCE..2 * MAX_DISTANCE).contains(&seq.wrapping_sub(last.from));
        if let Some(last) = list.last().copied().filter(is_distant) {
            // Otherwise wraparound would make the shift appear to lie ahead.
            *base = last.by;
            list.clear();
        }
        let shift = list.iter().rev().find(|shift| !precedes(seq, shift.from));
        seq.wrapping_add(shift.map_or(*base, |shift| shift.by))
    }

    /// Translates an acknowledgment in direction `back` of data that the other side sent.
    pub fn ack(&self, back: bool, ack: u32) -> u32 {
        let mut beyond = None;
        let DirectionShifts { base, list } = &self.0[usize::from(!back)];
        for shift in list.iter().rev() {
            let number = ack.wrapping_sub(shift.by);
            if !precedes(number, shift.from) {
                return limit(number, beyond);
            }
            beyond = Some(shift.from);
        }
        limit(ack.wrapping_sub(*base), beyond)
    }
}

/// Limits a number to the start of the next shift: the receiver may acknowledge a part of inserted
/// data, of which the sender does not know.
fn limit(number: u32, beyond: Option<u32>) -> u32 {
    beyond.filter(|&beyond| precedes(beyond, number)).unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_before_and_behind_a_change() {
        let mut shifts = SeqShifts::default();
        assert!(shifts.add(false, 120, 5));
        assert_eq!([100, 119, 120, 500].map(|n| shifts.seq(false, n)), [100, 119, 125, 505]);
        assert_eq!(
            [100, 120, 122, 125, 505].map(|n| shifts.ack(true, n)),
            [100, 120, 120, 120, 500]
        );
        assert_eq!((shifts.seq(true, 7), shifts.ack(false, 7)), (7, 7));
        // A retransmitted segment, and an earlier one.
        assert!(shifts.add(false, 120, 5));
        assert!(!shifts.add(false, 110, 5));
        assert_eq!(shifts.seq(false, 120), 125);
        assert!(shifts.add(false, 140, -7));
        assert_eq!([125, 140].map(|n| shifts.seq(false, n)), [130, 138]);
        assert_eq!([130, 138, 150].map(|n| shifts.ack(true, n)), [125, 140, 152]);
    }

    #[test]
    fn numbers_go_round() {
        let mut shifts = SeqShifts::default();
        let mut seq = u32::MAX - 50;
        assert!(shifts.add(false, seq, 3));
        for _ in 0..20 {
            assert_eq!(shifts.seq(false, seq), seq.wrapping_add(3));
            assert_eq!(shifts.ack(true, seq.wrapping_add(3)), seq);
            seq = seq.wrapping_add(MAX_DISTANCE - 1);
        }
    }

    #[test]
    fn a_change_far_behind_holds_for_all_numbers() {
        let mut shifts = SeqShifts::default();
        assert!(shifts.add(false, 120, 1) && shifts.add(false, 140, 3));
        assert_eq!(shifts.seq(false, 140 + MAX_DISTANCE - 1), 143 + MAX_DISTANCE);
        assert_eq!([100, 130].map(|n| shifts.seq(false, n)), [100, 131]);
        assert_eq!(shifts.seq(false, 140 + MAX_DISTANCE), 144 + MAX_DISTANCE);
        assert_eq!([100, 130].map(|n| shifts.seq(false, n)), [104, 134]);
        assert_eq!((shifts.ack(true, 110), shifts.last(false)), (106, Some(4)));
        // A later shift adds to it, and earlier numbers keep their shift.
        assert!(shifts.add(false, 200 + MAX_DISTANCE, -5));
        assert_eq!(
            [100, 200 + MAX_DISTANCE].map(|n| shifts.seq(false, n)),
            [104, 199 + MAX_DISTANCE]
        );
        assert_eq!(
            [110, 199 + MAX_DISTANCE].map(|n| shifts.ack(true, n)),
            [106, 200 + MAX_DISTANCE]
        );
    }

    proptest! {
        #[test]
        fn acknowledgments_undo_what_became_of_sequence_numbers(
            first: u32,
            changes in proptest::collection::vec((20..2000u32, -15..16i32), 0..40),
        ) {
            let mut shifts = SeqShifts::default();
            let mut seq = first;
            for (length, by) in changes {
                seq = seq.wrapping_add(length);
                prop_assert!(shifts.add(true, seq, by));
                let next = shifts.seq(true, seq);
                prop_assert_eq!(shifts.ack(false, next), seq);
            }
        }
    }
}
