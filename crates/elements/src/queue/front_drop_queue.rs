//! `FrontDropQueue`: the oldest make room.

use super::kept::{Kept, oldest_first};
use castanet_engine::prelude::*;

/// Keeps packets, first in first out; when it is full, the oldest make room.
///
/// Sources do not wait. The first packet that makes room is reported; a smaller capacity
/// drops the oldest packets at once (`drops.reset`).
///
/// ```click
/// in -> q :: FrontDropQueue(2) -> u :: Unqueue(ACTIVE false) -> out
/// q[1] -> old
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// > in 1.0.0.3 > 2.0.0.2 udp len 60
/// < old 1.0.0.1 > 2.0.0.2 udp len 60
/// = q.length 2
/// = q.drops 1
/// = q.highwater_length 2
/// ! u.active true
/// < out 1.0.0.2 > 2.0.0.2 udp len 60
/// < out 1.0.0.3 > 2.0.0.2 udp len 60
/// ! q.reset_counts
/// = q.drops 0
/// ! u.active false
/// > in 1.0.0.4 > 2.0.0.2 udp len 60
/// > in 1.0.0.5 > 2.0.0.2 udp len 60
/// ! q.capacity 1
/// = q.drops 0
/// = q.drops.reset 1
/// ! q.reset
/// = q.drops.reset 2
/// = q.length 0
/// ```
#[derive(Clone, Element)]
#[element(room = "queue", ports = "1/1-2")]
pub struct FrontDropQueue {
    /// How many packets find room.
    #[arg(live, default = 1000)]
    capacity: usize,
}

#[derive(Fate)]
pub enum Way {
    /// Packets, when they are pulled.
    Next,
    /// The oldest packets, when younger ones need their room.
    #[optional]
    Old,
}

impl Store for FrontDropQueue {
    type Local = Kept;
    type Fate = Way;

    fn put(&self, kept: &mut Kept, mut batch: Batch, cx: &mut Cx) {
        kept.packets.extend(batch.drain());
        let excess = kept.packets.len().saturating_sub(self.capacity);
        if excess > 0 {
            kept.overflow(excess, self.capacity, cx);
            kept.packets.drain(..excess).for_each(|packet| cx.emit(Way::Old, packet));
        }
        kept.settle();
    }

    oldest_first!();

    fn shrink(&self, kept: &mut Kept) {
        let excess = kept.packets.len().saturating_sub(self.capacity);
        kept.packets.drain(..excess);
    }
}
