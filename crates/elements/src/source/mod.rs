//! Elements that generate packets.

mod end_action;
pub mod fast_tcp_flows;
pub mod fast_udp_flows;
pub mod fast_udp_source;
mod flow_source;
pub mod infinite_source;
mod pattern;
pub mod random_source;
pub mod rated_source;
pub mod timed_source;
mod udp_flow_frame;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    source::<fast_tcp_flows::FastTCPFlows>(),
    source::<fast_udp_flows::FastUDPFlows>(),
    source::<fast_udp_source::FastUDPSource>(),
    source::<infinite_source::InfiniteSource>()
        .with_calls(infinite_source::InfiniteSource::calls)
        .with_notifier(NotifierOrder::Configuration),
    source::<random_source::RandomSource>().with_calls(random_source::RandomSource::calls),
    source::<rated_source::RatedSource>().with_calls(rated_source::RatedSource::calls),
    source::<timed_source::TimedSource>(),
];
