//! `AggregateLast`: the last of each aggregate.

use super::ended::{Ears, Ended};
use super::last_packet::Last;
use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use castanet_kit::lru::Lru;
use std::collections::BTreeMap;

/// Keeps the last packet of each aggregate, and passes it on when told that it was the last.
///
/// Packets before it leave by the second output. What is passed on says in its
/// annotations how many packets and bytes there were, and when the first came.
/// The handler `clear` says that all were the last; so does, for those that are over,
/// NOTIFIER, an `AggregateIPFlows`, with the next packets. Of more than CAPACITY
/// aggregates the one whose last packet is the oldest is over.
///
/// ```click
/// in -> AggregatePaint -> l :: AggregateLast -> k :: AggregateCounter -> last;  l[1] -> before
/// > in    1.0.0.1 > 2.0.0.2 udp ; paint 2
/// > in    1.0.0.2 > 2.0.0.2 udp ; paint 1
/// > in    1.0.0.3 > 2.0.0.2 udp ; paint 2
/// < before 1.0.0.1 > 2.0.0.2 udp ; paint 2
/// = l.length 2
/// ! l.clear
/// < last  1.0.0.2 > 2.0.0.2 udp ; paint 1
/// < last  1.0.0.3 > 2.0.0.2 udp ; paint 2
/// = k.count 3
/// = l.length 0
/// ```
/// ```click
/// in -> AggregatePaint -> l :: AggregateLast(CAPACITY 2) -> last;  l[1] -> before
/// > in     1.0.0.1 > 2.0.0.2 udp ; paint 2
/// > in     1.0.0.2 > 2.0.0.2 udp ; paint 1
/// > in     1.0.0.3 > 2.0.0.2 udp ; paint 2
/// < before 1.0.0.1 > 2.0.0.2 udp ; paint 2
/// > in     1.0.0.4 > 2.0.0.2 udp ; paint 3
/// < last   1.0.0.2 > 2.0.0.2 udp ; paint 1
/// = l.length 2
/// = l.displaced 1
/// ```
#[derive(Element)]
#[element(room = "aggregate", args = Wishes, processing = "h/h")]
pub struct AggregateLast {
    ears: Option<Ears>,
    stop: bool,
    capacity: usize,
}

#[derive(Args)]
pub struct Wishes {
    /// An element that says when aggregates are over.
    #[arg(keyword)]
    notifier: Option<String>,
    /// Whether to stop the router after `clear`.
    #[arg(keyword, default = false)]
    stop_after_clear: bool,
    /// How many aggregates to keep the last packets of.
    #[arg(keyword, default = 1 << 16, range = 1..)]
    capacity: u32,
}

impl Build for AggregateLast {
    type Args = Wishes;

    fn build(args: Wishes, setup: &Setup) -> Result<Self, ArgError> {
        let ears = args.notifier.map(|name| Ended::listen(&name, setup)).transpose()?;
        let (stop, capacity) = (args.stop_after_clear, args.capacity as usize);
        Ok(AggregateLast { ears, stop, capacity })
    }
}

/// The aggregates.
#[derive(Default, Local)]
#[local(methods)]
pub struct Kept {
    last: BTreeMap<u32, Last>,
    /// The same aggregates, in the order of their last packets.
    order: Lru<u32, ()>,
    clearing: bool,
    /// Aggregates that were over because there was no room for them.
    #[read]
    displaced: u64,
}

#[handlers]
impl Kept {
    /// How many packets are kept.
    #[read]
    fn length(&self) -> usize {
        self.last.len()
    }
    /// Passes on every packet that is kept.
    #[write(clear, wakes)]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.clearing = true;
        Ok(())
    }
}

#[derive(Fate)]
pub enum Way {
    /// The last packet of an aggregate.
    Last,
    /// All packets before it.
    #[optional]
    Before,
}

impl Kept {
    /// Passes on the packet that is kept of an aggregate.
    fn release(&mut self, aggregate: u32, cx: &mut Cx) {
        if let Some(last) = self.last.remove(&aggregate) {
            cx.emit(Way::Last, last.told());
        }
    }
}

impl PerBatch for AggregateLast {
    type On = on::Any;
    type Local = Kept;
    type Fate = Way;
    const SHARED: bool = true;

    fn batch(&self, kept: &mut Kept, _: usize, mut batch: Batch, cx: &mut Cx) {
        cx.keep(&mut batch, || kept.last.len());
        for packet in batch {
            let aggregate = packet.anno_u32(anno::AGGREGATE);
            let last = Last::of(packet, kept.last.get(&aggregate));
            if let Some(before) = kept.last.insert(aggregate, last) {
                cx.emit(Way::Before, before.packet);
            }
            if let Some((oldest, ())) = kept.order.insert(aggregate, (), self.capacity) {
                kept.displaced += 1;
                kept.release(oldest, cx);
            }
        }
        for aggregate in self.ears.iter().flat_map(Ears::over) {
            kept.order.remove(&aggregate);
            kept.release(aggregate, cx);
        }
    }

    fn wake(&self, kept: &mut Kept, cx: &mut Cx) {
        for _ in 0..cx.burst() {
            let Some((&aggregate, _)) = kept.last.first_key_value() else { break };
            kept.order.remove(&aggregate);
            kept.release(aggregate, cx);
        }
        if !kept.last.is_empty() {
            return cx.wake_at(cx.now());
        }
        if std::mem::take(&mut kept.clearing) && self.stop {
            cx.stop();
        }
    }

    fn held(&self, kept: &Kept) -> usize {
        kept.last.len()
    }
}
