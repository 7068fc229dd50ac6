//! Elements that make packets from nothing.

mod copies;
pub mod fast_tcp_flows;
pub mod fast_udp_flows;
pub mod fast_udp_source;
mod flows;
pub mod infinite_source;
pub mod random_source;
pub mod rated_source;
pub mod timed_source;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    source::<fast_tcp_flows::FastTCPFlows>(),
    source::<fast_udp_flows::FastUDPFlows>(),
    source::<fast_udp_source::FastUDPSource>(),
    source::<infinite_source::InfiniteSource>(),
    source::<random_source::RandomSource>(),
    source::<rated_source::RatedSource>(),
    source::<timed_source::TimedSource>(),
];
