//! Elements that keep packets for later or serve the pull side.

pub mod bandwidth_rated_unqueue;
pub mod bandwidth_shaper;
pub mod cpu_queue;
pub mod delay_shaper;
pub mod delay_unqueue;
pub mod front_drop_queue;
mod kept;
pub mod pipeliner;
pub mod prio_sched;
pub mod pull_switch;
#[allow(clippy::module_inception)] // the element is called what the room is
pub mod queue;
pub mod rated_unqueue;
pub mod round_robin_sched;
pub mod shaper;
pub mod timed_sink;
pub mod timed_unqueue;
pub mod unqueue;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    source::<bandwidth_rated_unqueue::BandwidthRatedUnqueue>(),
    source::<bandwidth_shaper::BandwidthShaper>(),
    store::<cpu_queue::CPUQueue>(),
    source::<delay_shaper::DelayShaper>(),
    source::<delay_unqueue::DelayUnqueue>(),
    store::<front_drop_queue::FrontDropQueue>(),
    store::<pipeliner::Pipeliner>(),
    source::<prio_sched::PrioSched>(),
    source::<pull_switch::PullSwitch>(),
    store::<queue::Queue>(),
    source::<rated_unqueue::RatedUnqueue>(),
    source::<round_robin_sched::RoundRobinSched>(),
    source::<shaper::Shaper>(),
    source::<timed_sink::TimedSink>(),
    source::<timed_unqueue::TimedUnqueue>(),
    source::<unqueue::Unqueue>(),
];
