//! `AggregateFirst`: the first of each aggregate.

use super::ended::{Ears, Ended};
use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use std::collections::HashSet;

/// Passes the first packet of each aggregate on.
///
/// With NOTIFIER, an `AggregateIPFlows`, it forgets aggregates that are over.
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
#[derive(Element)]
#[element(args = Wishes)]
pub struct AggregateFirst {
    ears: Option<Ears>,
}

#[derive(Args)]
pub struct Wishes {
    /// An element that says when aggregates are over.
    #[arg(keyword)]
    notifier: Option<String>,
}

impl Build for AggregateFirst {
    type Args = Wishes;

    fn build(args: Wishes, setup: &Setup) -> Result<Self, ArgError> {
        let ears = args.notifier.map(|name| Ended::listen(&name, setup)).transpose()?;
        Ok(AggregateFirst { ears })
    }
}

/// The aggregates that were seen.
#[derive(Default, Local)]
pub struct Seen {
    seen: HashSet<u32>,
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
        match seen.seen.insert(packet.anno_u32(anno::AGGREGATE)) {
            true => Way::First,
            false => Way::Again,
        }
    }
}
