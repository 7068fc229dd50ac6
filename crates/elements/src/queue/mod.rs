//! Elements that keep packets for later or serve the pull side.

pub mod bandwidth_rated_unqueue;
pub mod bandwidth_shaper;
pub mod front_drop_queue;
pub mod prio_sched;
#[allow(clippy::module_inception)] // the element is called what the room is
pub mod queue;
pub mod rated_unqueue;
pub mod round_robin_sched;
pub mod shaper;
pub mod timed_sink;
pub mod unqueue;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    source::<bandwidth_rated_unqueue::BandwidthRatedUnqueue>(),
    source::<bandwidth_shaper::BandwidthShaper>(),
    store::<front_drop_queue::FrontDropQueue>(),
    source::<prio_sched::PrioSched>(),
    store::<queue::Queue>(),
    source::<rated_unqueue::RatedUnqueue>(),
    source::<round_robin_sched::RoundRobinSched>(),
    source::<shaper::Shaper>(),
    source::<timed_sink::TimedSink>(),
    source::<unqueue::Unqueue>(),
];
