//! Elements that limit or delay traffic, and that meter or split it by rate.

pub mod bandwidth_meter;
pub mod bandwidth_rated_splitter;
pub mod bandwidth_rated_unqueue;
pub mod bandwidth_shaper;
pub mod block;
pub mod burster;
pub mod delay_shaper;
pub mod delay_unqueue;
pub mod exp_unqueue;
mod link_packets;
pub mod link_unqueue;
pub mod meter;
mod rate_limit;
pub mod rated_splitter;
pub mod rated_unqueue;
mod shaped_traffic;
pub mod shaper;
pub mod timed_unqueue;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<bandwidth_meter::BandwidthMeter>(),
    per_packet::<bandwidth_rated_splitter::BandwidthRatedSplitter>(),
    source::<bandwidth_rated_unqueue::BandwidthRatedUnqueue>(),
    source::<bandwidth_shaper::BandwidthShaper>(),
    per_packet::<block::Block>(),
    source::<burster::Burster>(),
    source::<delay_shaper::DelayShaper>().with_notifier(NotifierOrder::Configuration),
    source::<delay_unqueue::DelayUnqueue>(),
    source::<exp_unqueue::EXPUnqueue>(),
    source::<link_unqueue::LinkUnqueue>(),
    per_packet::<meter::Meter>(),
    per_packet::<rated_splitter::RatedSplitter>(),
    source::<rated_unqueue::RatedUnqueue>(),
    source::<shaper::Shaper>(),
    source::<timed_unqueue::TimedUnqueue>(),
];
