//! What the queues keep, and how they hand it out.

use castanet_engine::prelude::*;
use std::collections::VecDeque;

/// The packets kept, and what became of others.
#[derive(Default, Local)]
#[local(methods)]
pub struct Kept {
    pub(super) packets: VecDeque<Packet>,
    /// The most packets that were ever kept at once.
    #[read]
    highwater_length: usize,
    /// Packets that found no room, or made room for younger ones.
    #[read]
    pub(super) drops: u64,
}

#[handlers]
impl Kept {
    /// How many packets are kept.
    #[read]
    pub(super) fn length(&self) -> usize {
        self.packets.len()
    }
    /// Throws away all packets kept.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.packets.clear();
        Ok(())
    }
    /// Counts drops and the highest length from now on.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        (self.drops, self.highwater_length) = (0, self.packets.len());
        Ok(())
    }
}

impl Kept {
    /// Puts packets last.
    pub(super) fn put(&mut self, mut batch: Batch) {
        self.packets.extend(batch.drain());
    }

    /// Remembers how many there are, once those are gone that find no room.
    pub(super) fn settle(&mut self) {
        self.highwater_length = self.highwater_length.max(self.packets.len());
    }

    /// Takes up to `n` packets, the oldest first.
    pub(super) fn take(&mut self, n: usize, into: &mut Batch) {
        let n = n.min(self.packets.len());
        into.extend(self.packets.drain(..n));
    }
}
