//! `AggregateLast`: passes the last packet of each aggregate.

use super::end_notifications::{EndNotifier, EndSubscription};
use super::last_packet::LastPacket;
use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_kit::lru::Lru;
use std::collections::BTreeMap;

/// Stores the last packet of each aggregate, and passes it when the aggregate ends.
///
/// Earlier packets leave by the second output. The annotations of the last packet hold
/// the number of packets and bytes of the aggregate, and the time of its first packet.
/// The handler `clear` ends all aggregates. With NOTIFIER, an `AggregateIPFlows`, those
/// that have ended there end here, when the next packets come. Beyond CAPACITY the
/// aggregate whose last packet is the oldest ends.
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
#[element(room = "aggregate", args = AggregateLastArgs, processing = "h/h")]
pub struct AggregateLast {
    subscription: Option<EndSubscription>,
    stop: bool,
    capacity: usize,
}

#[derive(Args)]
pub struct AggregateLastArgs {
    /// An `AggregateIPFlows` that reports the end of aggregates.
    #[arg(keyword)]
    notifier: Option<String>,
    /// Whether to stop the router after `clear`.
    #[arg(keyword, default = false)]
    stop_after_clear: bool,
    /// The most aggregates whose last packets are stored.
    #[arg(keyword, default = 1 << 16, range = 1..)]
    capacity: u32,
}

impl Build for AggregateLast {
    type Args = AggregateLastArgs;

    fn build(args: AggregateLastArgs, setup: &Setup) -> Result<Self, ArgError> {
        let subscription =
            args.notifier.map(|name| EndNotifier::subscribe(&name, setup)).transpose()?;
        let (stop, capacity) = (args.stop_after_clear, args.capacity as usize);
        Ok(AggregateLast { subscription, stop, capacity })
    }
}

/// The stored packets, by aggregate.
#[derive(Default, Local)]
#[local(methods)]
pub struct AggregateLastState {
    last: BTreeMap<u32, LastPacket>,
    /// The same aggregates, in the order of their last packets.
    order: Lru<u32, ()>,
    clearing: bool,
    /// Number of aggregates that ended because CAPACITY was reached.
    #[read]
    #[portable]
    displaced: u64,
}

#[handlers]
impl AggregateLastState {
    /// Number of packets that are stored.
    #[read]
    fn length(&self) -> usize {
        self.last.len()
    }
    /// Passes every packet that is stored.
    #[write(clear, wakes)]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.clearing = true;
        Ok(())
    }
}

#[derive(Fate)]
pub enum AggregateLastExit {
    /// The last packet of an aggregate.
    Last,
    /// All packets before it.
    #[optional]
    Before,
}

impl AggregateLastState {
    /// Emits the packet that is stored for an aggregate.
    fn release(&mut self, aggregate: u32, cx: &mut Cx) {
        if let Some(last) = self.last.remove(&aggregate) {
            cx.emit(AggregateLastExit::Last, last.into_packet());
        }
    }
}

impl PerBatch for AggregateLast {
    type On = on::Any;
    type Local = AggregateLastState;
    type Fate = AggregateLastExit;
    const SHARED: bool = true;

    fn batch(&self, state: &mut AggregateLastState, _: usize, mut batch: Batch, cx: &mut Cx) {
        cx.keep(&mut batch, || state.last.len());
        for packet in batch {
            let aggregate = packet.anno_u32(anno::AGGREGATE);
            let last = LastPacket::new(packet, state.last.get(&aggregate));
            if let Some(before) = state.last.insert(aggregate, last) {
                cx.emit(AggregateLastExit::Before, before.packet);
            }
            if let Some((oldest, ())) = state.order.insert(aggregate, (), self.capacity) {
                state.displaced += 1;
                state.release(oldest, cx);
            }
        }
        for aggregate in self.subscription.iter().flat_map(EndSubscription::take_ended) {
            state.order.remove(&aggregate);
            state.release(aggregate, cx);
        }
    }

    fn run_timer(&self, state: &mut AggregateLastState, cx: &mut Cx) {
        for _ in 0..cx.burst() {
            let Some((&aggregate, _)) = state.last.first_key_value() else { break };
            state.order.remove(&aggregate);
            state.release(aggregate, cx);
        }
        if !state.last.is_empty() {
            return cx.set_timer(cx.now());
        }
        if std::mem::take(&mut state.clearing) && self.stop {
            cx.stop();
        }
    }

    fn held(&self, state: &AggregateLastState) -> usize {
        state.last.len()
    }
}
