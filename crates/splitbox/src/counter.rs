//! Counters of packets: the lane that counts, and the packet's number in the lane.

use crate::setup::{BlindUse, SetupOptions};

/// Bits of a counter that have the number of the packet in its lane.
const SEQUENCE_BITS: u32 = 56;

/// The counter of a packet in its epoch: the lane in the highest 8 bits, and the number of the packet
/// in the lane in the others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LaneCounter {
    /// The lane.
    pub lane: u8,
    /// The number of the packet in the lane, less than 2^56.
    pub sequence: u64,
}

impl LaneCounter {
    /// One more than the greatest sequence number.
    pub const SEQUENCES: u64 = 1 << SEQUENCE_BITS;

    /// The parts of a counter.
    #[inline]
    pub fn of(counter: u64) -> LaneCounter {
        let lane = (counter >> SEQUENCE_BITS) as u8;
        LaneCounter { lane, sequence: counter % LaneCounter::SEQUENCES }
    }

    /// The counter as one number.
    #[inline]
    pub fn number(self) -> u64 {
        (u64::from(self.lane) << SEQUENCE_BITS) | (self.sequence % LaneCounter::SEQUENCES)
    }
}

/// The index of the blind of a packet. Each lane has an equal part of the blinds of an epoch, lane 0
/// the first one. `None` if no entry makes such a counter: there is no such lane, or its blinds are
/// used up.
#[inline]
pub fn blind_index(counter: u64, options: &SetupOptions) -> Option<u64> {
    let LaneCounter { lane, sequence } = LaneCounter::of(counter);
    if usize::from(lane) >= options.lanes {
        return None;
    }
    let part = options.blinds / options.lanes as u64;
    let within = match options.blind_use {
        BlindUse::Once => (sequence < part).then_some(sequence),
        BlindUse::Again => sequence.checked_rem(part),
    };
    Some(u64::from(lane) * part + within?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::HashKind;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn options(blinds: u64, lanes: usize, blind_use: BlindUse) -> SetupOptions {
        SetupOptions {
            processors: 2,
            hash: HashKind::Blake3,
            header_bits: 8,
            blinds,
            blind_use,
            lanes,
            has_constant_work: false,
        }
    }

    proptest! {
        #[test]
        fn counters_have_a_lane_and_a_sequence(lane: u8, sequence in 0..LaneCounter::SEQUENCES) {
            let counter = LaneCounter { lane, sequence };
            prop_assert_eq!(LaneCounter::of(counter.number()), counter);
        }

        #[test]
        fn lanes_share_no_blind_and_use_each_of_theirs(lanes in 1..9_usize, more in 0..40_u64) {
            let blinds = lanes as u64 + more;
            let (again, once) =
                ([BlindUse::Again, BlindUse::Once]).map(|it| options(blinds, lanes, it)).into();
            let part = blinds / lanes as u64;
            let mut used = HashSet::new();
            for lane in 0..lanes as u8 {
                let index = |sequence, options: &SetupOptions| {
                    blind_index(LaneCounter { lane, sequence }.number(), options)
                };
                for sequence in 0..part {
                    let blind = index(sequence, &again).expect("has a blind");
                    prop_assert!(blind < blinds && used.insert(blind));
                    prop_assert_eq!(index(sequence, &once), Some(blind));
                    prop_assert_eq!(index(sequence + part, &again), Some(blind));
                    prop_assert_eq!(index(sequence + part, &once), None);
                }
            }
            let outside = LaneCounter { lane: lanes as u8, sequence: 0 }.number();
            prop_assert_eq!(blind_index(outside, &again), None);
        }
    }
}
