//! Numbers of packets in an epoch.

use crate::setup::{BlindUse, SetupOptions};

/// The number of a packet in its epoch: a lane, and a sequence number in that lane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PacketCounter(pub u64);

/// Bits of a sequence number.
const SEQUENCE_BITS: u32 = 56;

impl PacketCounter {
    /// The number of a packet: the lane stands in the highest eight bits.
    pub fn new(lane: u8, sequence: u64) -> PacketCounter {
        PacketCounter(u64::from(lane) << SEQUENCE_BITS | sequence & PacketCounter::MAX_SEQUENCE)
    }

    /// The greatest sequence number.
    pub const MAX_SEQUENCE: u64 = (1 << SEQUENCE_BITS) - 1;

    /// The lane.
    #[inline]
    pub fn lane(self) -> usize {
        (self.0 >> SEQUENCE_BITS) as usize
    }

    /// The sequence number in the lane.
    #[inline]
    pub fn sequence(self) -> u64 {
        self.0 & PacketCounter::MAX_SEQUENCE
    }

    /// The index of the packet's blind. `None` if there is no such lane, or if blinds are used once and
    /// the lane has no more.
    #[inline]
    pub fn blind(self, options: &SetupOptions) -> Option<u64> {
        let count = options.blinds / options.lanes as u64;
        let sequence = self.sequence();
        let is_there = self.lane() < options.lanes
            && (options.blind_use == BlindUse::Again || sequence < count);
        is_there.then(|| self.lane() as u64 * count + sequence % count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::HashKind;

    #[test]
    fn lanes_have_blinds_of_their_own() {
        let options = SetupOptions {
            processors: 2,
            hash: HashKind::Blake3,
            header_bits: 96,
            blinds: 7,
            blind_use: BlindUse::Again,
            lanes: 2,
            has_constant_work: false,
        };
        let blind = |lane, sequence, options| PacketCounter::new(lane, sequence).blind(options);
        assert_eq!([0, 2, 3].map(|it| blind(0, it, &options)), [Some(0), Some(2), Some(0)]);
        assert_eq!([0, 2, 3].map(|it| blind(1, it, &options)), [Some(3), Some(5), Some(3)]);
        assert_eq!(blind(2, 0, &options), None);
        let once = SetupOptions { blind_use: BlindUse::Once, ..options };
        assert_eq!([0, 2, 3].map(|it| blind(1, it, &once)), [Some(3), Some(5), None]);
        let counter = PacketCounter::new(63, PacketCounter::MAX_SEQUENCE);
        assert_eq!((counter.lane(), counter.sequence()), (63, (1 << 56) - 1));
    }
}
