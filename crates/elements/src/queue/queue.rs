//! `Queue`: first in, first out.

use super::kept::{Kept, oldest_first};
use castanet_engine::prelude::*;

/// Keeps packets, first in first out, until somebody pulls them.
///
/// Any number of workers may push and pull: the engine lets in one at a time,
/// for a burst. Sources such as `InfiniteSource` wait while it is full; what comes
/// from elsewhere leaves by the second output or is dropped, and the first such packet
/// is reported. A smaller capacity drops the youngest packets beyond it at once
/// (`drops.reset`).
///
/// ```click
/// in -> q :: Queue(2) -> u :: Unqueue(ACTIVE false) -> out
/// q[1] -> full
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// > in 1.0.0.3 > 2.0.0.2 udp len 60
/// < full 1.0.0.3 > 2.0.0.2 udp len 60
/// = q.length 2
/// = q.capacity 2
/// = q.drops 1
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.2 > 2.0.0.2 udp len 60
/// = q.length 0
/// = q.highwater_length 2
/// ! q.reset_counts
/// = q.highwater_length 0
/// = q.drops 0
/// ```
///
/// ```click
/// in -> q :: Queue -> u :: Unqueue(ACTIVE false) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// > in 1.0.0.3 > 2.0.0.2 udp len 60
/// ! q.capacity 1
/// = q.length 1
/// = q.drops 0
/// = q.drops.reset 2
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// ! u.active false
/// > in 1.0.0.4 > 2.0.0.2 udp len 60
/// > in 1.0.0.5 > 2.0.0.2 udp len 60
/// ! q.reset
/// = q.length 0
/// ~ q :: Queue: overflow
/// = q.drops.reset 3
/// = q.drops.full 1
/// ```
#[derive(Clone, Element)]
#[element(
    room = "queue",
    ports = "1/1-2",
    alias = "FullNoteQueue",
    alias = "QuickNoteQueue",
    alias = "ThreadSafeQueue",
    alias = "MSQueue"
)]
pub struct Queue {
    /// How many packets find room.
    #[arg(live, default = 1000)]
    capacity: usize,
}

#[derive(Fate)]
pub enum Way {
    /// Packets, when they are pulled.
    Next,
    /// Packets that found the queue full.
    #[optional]
    Full,
}

impl Store for Queue {
    type Local = Kept;
    type Fate = Way;
    const NOTIFIES: bool = true;

    fn put(&self, kept: &mut Kept, batch: Batch, cx: &mut Cx) {
        kept.put(batch, self.capacity, Way::Full, cx);
    }

    oldest_first!();

    fn shrink(&self, kept: &mut Kept) {
        kept.packets.truncate(self.capacity);
    }
}
