//! `AggregateFirst`: passes the first packet of each aggregate.

use super::end_notifications::{EndNotifier, EndSubscription};
use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_kit::lru::Lru;

/// Passes the first packet of each aggregate.
///
/// Later packets leave by the second output. With NOTIFIER, an `AggregateIPFlows`, it forgets
/// aggregates that have ended. Beyond CAPACITY it forgets the aggregate whose last packet is
/// the oldest.
///
/// ```click
/// in -> AggregatePaint -> f :: AggregateFirst -> first;  f[1] -> again
/// > in    1.0.0.1 > 2.0.0.2 udp ; paint 1
/// > in    1.0.0.2 > 2.0.0.2 udp ; paint 2
/// > in    1.0.0.3 > 2.0.0.2 udp ; paint 1
/// < first 1.0.0.1 > 2.0.0.2 udp ; paint 1
/// < first 1.0.0.2 > 2.0.0.2 udp ; paint 2
/// < again 1.0.0.3 > 2.0.0.2 udp ; paint 1
/// ```
/// ```click
/// in -> AggregatePaint -> f :: AggregateFirst(CAPACITY 2) -> first;  f[1] -> again
/// > in    1.0.0.1 > 2.0.0.2 udp ; paint 1
/// > in    1.0.0.1 > 2.0.0.2 udp ; paint 2
/// > in    1.0.0.1 > 2.0.0.2 udp ; paint 1
/// > in    1.0.0.1 > 2.0.0.2 udp ; paint 3
/// > in    1.0.0.1 > 2.0.0.2 udp ; paint 2
/// < first 1.0.0.1 > 2.0.0.2 udp ; paint 1
/// < first 1.0.0.1 > 2.0.0.2 udp ; paint 2
/// < again 1.0.0.1 > 2.0.0.2 udp ; paint 1
/// < first 1.0.0.1 > 2.0.0.2 udp ; paint 3
/// < first 1.0.0.1 > 2.0.0.2 udp ; paint 2
/// = f.nagg 2
/// = f.displaced 2
/// ```
#[derive(Element)]
#[element(room = "aggregate", args = AggregateFirstArgs)]
pub struct AggregateFirst {
    subscription: Option<EndSubscription>,
    capacity: usize,
}

#[derive(Args)]
pub struct AggregateFirstArgs {
    /// An `AggregateIPFlows` that reports the end of aggregates.
    #[arg(keyword)]
    notifier: Option<String>,
    /// The most aggregates to remember.
    #[arg(keyword, default = 1 << 20, range = 1..)]
    capacity: u32,
}

impl Build for AggregateFirst {
    type Args = AggregateFirstArgs;

    fn build(args: AggregateFirstArgs, setup: &Setup) -> Result<Self, ArgError> {
        let subscription =
            args.notifier.map(|name| EndNotifier::subscribe(&name, setup)).transpose()?;
        Ok(AggregateFirst { subscription, capacity: args.capacity as usize })
    }
}

/// The aggregates of which a packet has come.
#[derive(Default, Local)]
#[local(methods)]
pub struct AggregateFirstState {
    aggregates: Lru<u32, ()>,
    /// Number of aggregates that were forgotten because CAPACITY was reached.
    #[read]
    #[portable]
    displaced: u64,
}

#[handlers]
impl AggregateFirstState {
    /// Number of aggregates that are remembered.
    #[read]
    fn nagg(&self) -> usize {
        self.aggregates.len()
    }
}

#[derive(Fate)]
pub enum AggregateFirstExit {
    /// The first packet of an aggregate.
    First,
    /// All other packets.
    #[optional]
    Again,
}

impl PerPacket for AggregateFirst {
    type On = on::Any;
    type Local = AggregateFirstState;
    type Fate = AggregateFirstExit;
    const SHARED: bool = true;

    fn begin_burst(&self, state: &mut AggregateFirstState, _: Time) {
        let ended = self.subscription.iter().flat_map(EndSubscription::take_ended);
        ended.for_each(|aggregate| _ = state.aggregates.remove(&aggregate));
    }

    fn packet(&self, state: &mut AggregateFirstState, packet: &mut Packet) -> AggregateFirstExit {
        let aggregate = packet.anno_u32(anno::AGGREGATE);
        if state.aggregates.get_mut(&aggregate).is_some() {
            return AggregateFirstExit::Again;
        }
        let displaced = state.aggregates.insert(aggregate, (), self.capacity);
        state.displaced += u64::from(displaced.is_some());
        AggregateFirstExit::First
    }
}
