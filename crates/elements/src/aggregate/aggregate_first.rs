//! `AggregateFirst`: the first of each aggregate.

use super::ended::{Ears, Ended};
use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use castanet_kit::lru::Lru;

/// Passes the first packet of each aggregate on.
///
/// With NOTIFIER, an `AggregateIPFlows`, it forgets aggregates that are over. Of
/// more than CAPACITY it forgets the one whose last packet is the oldest.
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
#[element(room = "aggregate", args = Wishes)]
pub struct AggregateFirst {
    ears: Option<Ears>,
    capacity: usize,
}

#[derive(Args)]
pub struct Wishes {
    /// An element that says when aggregates are over.
    #[arg(keyword)]
    notifier: Option<String>,
    /// How many aggregates to remember.
    #[arg(keyword, default = 1 << 20, range = 1..)]
    capacity: u32,
}

impl Build for AggregateFirst {
    type Args = Wishes;

    fn build(args: Wishes, setup: &Setup) -> Result<Self, ArgError> {
        let ears = args.notifier.map(|name| Ended::listen(&name, setup)).transpose()?;
        Ok(AggregateFirst { ears, capacity: args.capacity as usize })
    }
}

/// The aggregates that were seen.
#[derive(Default, Local)]
#[local(methods)]
pub struct Seen {
    seen: Lru<u32, ()>,
    /// Aggregates that were forgotten because there was no room for them.
    #[read]
    displaced: u64,
}

#[handlers]
impl Seen {
    /// How many aggregates it remembers.
    #[read]
    fn nagg(&self) -> usize {
        self.seen.len()
    }
}

#[derive(Fate)]
pub enum Way {
    /// The first packet of an aggregate.
    First,
    /// All others.
    #[optional]
    Again,
}

impl PerPacket for AggregateFirst {
    type On = on::Any;
    type Local = Seen;
    type Fate = Way;
    const SHARED: bool = true;

    fn burst(&self, seen: &mut Seen, _: Time) {
        let over = self.ears.iter().flat_map(Ears::over);
        over.for_each(|aggregate| _ = seen.seen.remove(&aggregate));
    }

    fn packet(&self, seen: &mut Seen, packet: &mut Packet) -> Way {
        let aggregate = packet.anno_u32(anno::AGGREGATE);
        if seen.seen.get_mut(&aggregate).is_some() {
            return Way::Again;
        }
        let displaced = seen.seen.insert(aggregate, (), self.capacity);
        seen.displaced += u64::from(displaced.is_some());
        Way::First
    }
}
