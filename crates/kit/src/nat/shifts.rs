//! By how much the sequence numbers of a connection are off, once somebody has changed the
//! length of what its segments carry.

/// Numbers are kept in order only as far as this: half of what comparisons can bear.
const FAR: u32 = 1 << 30;
/// How many changes of one direction are remembered.
const MOST: usize = 64;

/// From a sequence number on, all are off by so much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shift {
    from: u32,
    by: u32,
}

/// The changes of one direction, with sequence numbers as its sender writes them.
#[derive(Clone, Debug, Default)]
struct Changes {
    /// By how much the numbers before all changes are off.
    base: u32,
    list: Vec<Shift>,
}

/// The changes of both directions.
#[derive(Clone, Debug, Default)]
pub struct Shifts([Changes; 2]);

/// Whether `a` comes before `b` (RFC 9293, 3.4).
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Shifts {
    /// What the sender numbers `from` and beyond comes `by` later, beside what was said of
    /// earlier numbers; of the same number the last word counts. Whether that could be noted:
    /// not of numbers before those of which something is known.
    pub fn add(&mut self, back: bool, from: u32, by: i32) -> bool {
        let Changes { base, list } = &mut self.0[usize::from(back)];
        list.pop_if(|last| last.from == from);
        if list.last().is_some_and(|last| before(from, last.from)) {
            return false;
        }
        let so_far = list.last().map_or(*base, |last| last.by);
        let shift = Shift { from, by: so_far.wrapping_add_signed(by) };
        if shift.by != so_far {
            list.push(shift);
        }
        if list.len() > MOST {
            list.remove(0);
        }
        true
    }

    /// By how much the newest numbers of a direction are off.
    pub fn last(&self, back: bool) -> Option<i32> {
        let Changes { base, list } = &self.0[usize::from(back)];
        Some(list.last().map_or(*base, |shift| shift.by) as i32)
    }

    /// Translates a sender's sequence number. One far beyond the latest change makes that
    /// change hold for all numbers.
    pub fn seq(&mut self, back: bool, seq: u32) -> u32 {
        let Changes { base, list } = &mut self.0[usize::from(back)];
        let is_far = |last: &Shift| (FAR..2 * FAR).contains(&seq.wrapping_sub(last.from));
        if let Some(last) = list.last().copied().filter(is_far) {
            // Or else the change would soon seem to lie ahead.
            *base = last.by;
            list.clear();
        }
        let shift = list.iter().rev().find(|shift| !before(seq, shift.from));
        seq.wrapping_add(shift.map_or(*base, |shift| shift.by))
    }

    /// What an acknowledgment becomes that goes `back` (or not), of what the other side sent.
    pub fn ack(&self, back: bool, ack: u32) -> u32 {
        let mut beyond = None;
        let Changes { base, list } = &self.0[usize::from(!back)];
        for shift in list.iter().rev() {
            let number = ack.wrapping_sub(shift.by);
            if !before(number, shift.from) {
                return within(number, beyond);
            }
            beyond = Some(shift.from);
        }
        within(ack.wrapping_sub(*base), beyond)
    }
}

/// A number, but not beyond where the next change begins: a part of what was put in there may
/// be acknowledged, and the sender knows nothing of it.
fn within(number: u32, beyond: Option<u32>) -> u32 {
    beyond.filter(|&beyond| before(beyond, number)).unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_before_and_behind_a_change() {
        let mut shifts = Shifts::default();
        assert!(shifts.add(false, 120, 5));
        assert_eq!([100, 119, 120, 500].map(|n| shifts.seq(false, n)), [100, 119, 125, 505]);
        assert_eq!(
            [100, 120, 122, 125, 505].map(|n| shifts.ack(true, n)),
            [100, 120, 120, 120, 500]
        );
        assert_eq!((shifts.seq(true, 7), shifts.ack(false, 7)), (7, 7));
        // The same segment once more, and one from before.
        assert!(shifts.add(false, 120, 5));
        assert!(!shifts.add(false, 110, 5));
        assert_eq!(shifts.seq(false, 120), 125);
        assert!(shifts.add(false, 140, -7));
        assert_eq!([125, 140].map(|n| shifts.seq(false, n)), [130, 138]);
        assert_eq!([130, 138, 150].map(|n| shifts.ack(true, n)), [125, 140, 152]);
    }

    #[test]
    fn numbers_go_round() {
        let mut shifts = Shifts::default();
        let mut seq = u32::MAX - 50;
        assert!(shifts.add(false, seq, 3));
        for _ in 0..20 {
            assert_eq!(shifts.seq(false, seq), seq.wrapping_add(3));
            assert_eq!(shifts.ack(true, seq.wrapping_add(3)), seq);
            seq = seq.wrapping_add(FAR - 1);
        }
    }

    #[test]
    fn a_change_far_behind_holds_for_all_numbers() {
        let mut shifts = Shifts::default();
        assert!(shifts.add(false, 120, 1) && shifts.add(false, 140, 3));
        assert_eq!(shifts.seq(false, 140 + FAR - 1), 143 + FAR);
        assert_eq!([100, 130].map(|n| shifts.seq(false, n)), [100, 131]);
        assert_eq!(shifts.seq(false, 140 + FAR), 144 + FAR);
        assert_eq!([100, 130].map(|n| shifts.seq(false, n)), [104, 134]);
        assert_eq!((shifts.ack(true, 110), shifts.last(false)), (106, Some(4)));
        // What changes later comes on top, and numbers before it keep what held.
        assert!(shifts.add(false, 200 + FAR, -5));
        assert_eq!([100, 200 + FAR].map(|n| shifts.seq(false, n)), [104, 199 + FAR]);
        assert_eq!([110, 199 + FAR].map(|n| shifts.ack(true, n)), [106, 200 + FAR]);
    }

    proptest! {
        #[test]
        fn acknowledgments_undo_what_became_of_sequence_numbers(
            first: u32,
            changes in proptest::collection::vec((20..2000u32, -15..16i32), 0..40),
        ) {
            let mut shifts = Shifts::default();
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
