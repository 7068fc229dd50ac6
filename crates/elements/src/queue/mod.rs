//! Elements that keep packets for later or serve the pull side.

pub mod bandwidth_rated_unqueue;
pub mod bandwidth_shaper;
pub mod burster;
pub mod cpu_queue;
pub mod delay_shaper;
pub mod delay_unqueue;
pub mod drr_sched;
pub mod exp_unqueue;
pub mod front_drop_queue;
mod kept;
pub mod link_unqueue;
pub mod mixed_queue;
pub mod notifier_debug;
pub mod pipeliner;
pub mod prio_sched;
pub mod pull_switch;
#[allow(clippy::module_inception)] // the element is called what the room is
pub mod queue;
pub mod rated_unqueue;
pub mod replay_unqueue;
pub mod round_robin_sched;
pub mod shaper;
pub mod simple_queue;
pub mod static_pull_switch;
pub mod stride_sched;
pub(crate) mod tickets;
pub mod time_sorted_sched;
pub mod timed_sink;
pub mod timed_unqueue;
mod trace;
pub mod unqueue;
pub mod unqueue2;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    source::<bandwidth_rated_unqueue::BandwidthRatedUnqueue>(),
    source::<bandwidth_shaper::BandwidthShaper>(),
    source::<burster::Burster>(),
    store::<cpu_queue::CPUQueue>(),
    source::<delay_shaper::DelayShaper>(),
    source::<delay_unqueue::DelayUnqueue>(),
    source::<drr_sched::DRRSched>(),
    source::<exp_unqueue::EXPUnqueue>(),
    store::<front_drop_queue::FrontDropQueue>(),
    source::<link_unqueue::LinkUnqueue>(),
    store::<mixed_queue::MixedQueue>(),
    source::<notifier_debug::NotifierDebug>(),
    store::<pipeliner::Pipeliner>(),
    source::<prio_sched::PrioSched>(),
    source::<pull_switch::PullSwitch>(),
    store::<queue::Queue>(),
    source::<rated_unqueue::RatedUnqueue>(),
    source::<replay_unqueue::ReplayUnqueue>(),
    source::<round_robin_sched::RoundRobinSched>(),
    source::<shaper::Shaper>(),
    store::<simple_queue::SimpleQueue>(),
    source::<static_pull_switch::StaticPullSwitch>(),
    source::<stride_sched::StrideSched>(),
    source::<time_sorted_sched::TimeSortedSched>(),
    source::<timed_sink::TimedSink>(),
    source::<timed_unqueue::TimedUnqueue>(),
    source::<unqueue::Unqueue>(),
    source::<unqueue2::Unqueue2>().with_watch(unqueue2::Unqueue2::queues),
];
