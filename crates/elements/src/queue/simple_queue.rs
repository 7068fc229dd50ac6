//! `SimpleQueue`: first in, first out, and nobody waits for room.

use super::kept::{Kept, oldest_first};
use castanet_engine::prelude::*;

/// Keeps packets, first in first out; sources do not wait while it is full.
///
/// It differs from `Queue` in that alone: what finds no room leaves by the second output
/// or is dropped, and the first such packet is reported. A smaller capacity drops the
/// youngest packets beyond it at once (`drops.reset`).
///
/// ```click
/// InfiniteSource(LIMIT 30) -> c :: Counter -> q :: NotifierQueue(4) -> Idle
/// + 1ms
/// ~ q :: NotifierQueue: overflow
/// = c.count 30
/// = q.length 4
/// = q.drops 26
/// ```
///
/// ```click
/// in -> q :: SimpleQueue(2) -> u :: Unqueue(ACTIVE false) -> out
/// q[1] -> full
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// > in 1.0.0.3 > 2.0.0.2 udp
/// < full 1.0.0.3 > 2.0.0.2 udp
/// ~ q :: SimpleQueue: overflow
/// = q.capacity 2
/// = q.highwater_length 2
/// ! q.capacity 1
/// = q.length 1
/// = q.drops 1
/// = q.drops.reset 1
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ! u.active false
/// > in 1.0.0.4 > 2.0.0.2 udp
/// ! q.reset
/// ! q.reset_counts
/// = q.drops 0
/// = q.length 0
/// ```
#[derive(Clone, Element)]
#[element(room = "queue", ports = "1/1-2", alias = "NotifierQueue")]
pub struct SimpleQueue {
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

impl Store for SimpleQueue {
    type Local = Kept;
    type Fate = Way;

    fn put(&self, kept: &mut Kept, batch: Batch, cx: &mut Cx) {
        kept.put(batch, self.capacity, Way::Full, cx);
    }

    oldest_first!();

    fn shrink(&self, kept: &mut Kept) {
        kept.packets.truncate(self.capacity);
    }
}
