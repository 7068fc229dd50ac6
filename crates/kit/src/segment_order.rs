//! The order of buffered TCP segments, by sequence number.

use castanet_wire::tcp::precedes;
use std::collections::VecDeque;

/// The segments of a buffer in the order of their sequence numbers, and the number that is to leave next.
#[derive(Clone, Debug, Default)]
pub struct SegmentOrder {
    /// Sequence number and length of each.
    segments: VecDeque<(u32, u32)>,
    /// The number behind the segment that left last; `None` before any has left.
    next: Option<u32>,
}

impl SegmentOrder {
    /// How many segments there are.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Whether there are no segments.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Adds a segment; returns its place among the others. `None` if there is one with its number, or
    /// segments behind that have left.
    pub fn insert(&mut self, seq: u32, len: u32) -> Option<usize> {
        if self.next.is_some_and(|next| precedes(seq, next)) {
            return None;
        }
        // Most segments come in order.
        let place = self.segments.iter().rposition(|&(other, _)| !precedes(seq, other));
        let place = match place {
            Some(before) if self.segments[before].0 == seq => return None,
            Some(before) => before + 1,
            None => 0,
        };
        self.segments.insert(place, (seq, len));
        Some(place)
    }

    /// Removes the first segment if no number is missing before it, or if `skips`; returns whether it
    /// did.
    pub fn pop(&mut self, skips: bool) -> bool {
        let Some(&(seq, len)) = self.segments.front() else { return false };
        let leaves = skips || self.next.is_none_or(|next| next == seq);
        if leaves {
            self.segments.pop_front();
            self.next = Some(seq.wrapping_add(len));
        }
        leaves
    }

    /// The first number from `from` on that no segment has, where those of all segments that have left count
    /// as there; `None` if there was no segment yet.
    pub fn next_missing(&self, from: u32) -> Option<u32> {
        let mut expected = self.next.or(self.segments.front().map(|first| first.0))?;
        for &(seq, len) in &self.segments {
            if seq != expected {
                if !precedes(expected, from) {
                    return Some(expected);
                }
                if precedes(from, seq) {
                    return Some(from);
                }
            }
            expected = seq.wrapping_add(len);
        }
        Some(if precedes(expected, from) { from } else { expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn segments_leave_in_order_and_gaps_are_known() {
        let mut order = SegmentOrder::default();
        assert_eq!(order.next_missing(7), None);
        let start = u32::MAX - 4;
        assert_eq!(order.insert(start, 5), Some(0));
        assert_eq!(order.insert(10, 5), Some(1));
        assert_eq!(order.insert(5, 3), Some(1));
        assert_eq!(order.insert(5, 2), None);
        // From 0 to 4 and from 8 to 9 nothing is there.
        assert_eq!(order.next_missing(start), Some(0));
        assert_eq!(order.next_missing(2), Some(2));
        assert_eq!(order.next_missing(6), Some(8));
        assert_eq!(order.next_missing(11), Some(15));
        assert_eq!(order.next_missing(99), Some(99));
        assert!(order.pop(false));
        assert!(!order.pop(false));
        assert_eq!(order.insert(start, 5), None);
        assert_eq!(order.insert(0, 5), Some(0));
        assert!(order.pop(false) && order.pop(false));
        assert!(!order.pop(false));
        assert!(order.pop(true));
        assert_eq!((order.len(), order.is_empty(), order.next_missing(0)), (0, true, Some(15)));
    }

    proptest! {
        #[test]
        fn all_numbers_leave_once_and_in_order(
            start: u32,
            lengths in proptest::collection::vec(1_u32..1000, 1..50),
            order in any::<prop::sample::Index>(),
        ) {
            let mut segments = Vec::new();
            let mut seq = start;
            for len in lengths {
                segments.push((seq, len));
                seq = seq.wrapping_add(len);
            }
            // The first one opens the connection.
            let mut buffer = SegmentOrder::default();
            prop_assert_eq!(buffer.insert(segments[0].0, segments[0].1), Some(0));
            let turn = order.index(segments.len());
            let mut rest = segments[1..].to_vec();
            let turn = turn.min(rest.len());
            rest.rotate_left(turn);
            for (seq, len) in rest {
                prop_assert!(buffer.insert(seq, len).is_some());
                prop_assert_eq!(buffer.insert(seq, len), None);
            }
            prop_assert_eq!(buffer.next_missing(start), Some(seq));
            for _ in &segments {
                prop_assert!(buffer.pop(false));
            }
            prop_assert!(buffer.is_empty());
        }
    }
}
