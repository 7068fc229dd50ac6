//! `MixedQueue`: first in, first out, and last in, first out.

use super::kept::{Kept, oldest_first};
use castanet_engine::prelude::*;

/// Keeps packets, of its first input in a line, of its second before all others.
///
/// When it is full, a packet of the first input finds no room; one of the second
/// takes that of the last in line. The first packet that so finds no room is reported;
/// sources do not wait. A smaller capacity drops the last in line at once (`drops.reset`).
///
/// ```click
/// in -> q :: MixedQueue(3) -> u :: Unqueue(ACTIVE false) -> out
/// urgent -> [1] q;  q[1] -> full
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// > urgent 1.0.0.3 > 2.0.0.2 udp
/// > in 1.0.0.4 > 2.0.0.2 udp
/// < full 1.0.0.4 > 2.0.0.2 udp
/// > urgent 1.0.0.5 > 2.0.0.2 udp
/// < full 1.0.0.2 > 2.0.0.2 udp
/// = q.length 3
/// = q.highwater_length 3
/// = q.capacity 3
/// = q.drops 2
/// ! u.active true
/// < out 1.0.0.5 > 2.0.0.2 udp
/// < out 1.0.0.3 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ! q.reset_counts
/// = q.drops 0
/// ! u.active false
/// > urgent 1.0.0.6 > 2.0.0.2 udp
/// > in 1.0.0.7 > 2.0.0.2 udp
/// ! q.capacity 1
/// = q.length 1
/// = q.drops 0
/// ! q.reset
/// = q.drops.reset 2
/// ```
#[derive(Clone, Element)]
#[element(room = "queue", ports = "2/1-2", processing = "h/lh")]
pub struct MixedQueue {
    /// How many packets find room.
    #[arg(live, default = 1000)]
    capacity: usize,
}

#[derive(Fate)]
pub enum Way {
    /// Packets, when they are pulled.
    Next,
    /// Packets that found no room, or had to make it.
    #[optional]
    Full,
}

impl Store for MixedQueue {
    type Local = Kept;
    type Fate = Way;

    fn put(&self, kept: &mut Kept, batch: Batch, cx: &mut Cx) {
        kept.put(batch, self.capacity, Way::Full, cx);
    }

    fn put_at(&self, kept: &mut Kept, port: usize, batch: Batch, cx: &mut Cx) {
        if port == 0 {
            return self.put(kept, batch, cx);
        }
        for packet in batch {
            kept.packets.push_front(packet);
            if kept.packets.len() > self.capacity
                && let Some(last) = kept.packets.pop_back()
            {
                kept.overflow(1, self.capacity, cx);
                cx.emit(Way::Full, last);
            }
            kept.settle();
        }
    }

    oldest_first!();

    fn shrink(&self, kept: &mut Kept) {
        kept.packets.truncate(self.capacity);
    }
}
