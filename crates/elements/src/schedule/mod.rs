//! Elements that choose the input from which the next packet is pulled.

pub mod drr_sched;
pub mod prio_sched;
pub mod pull_switch;
pub mod round_robin_sched;
pub mod static_pull_switch;
pub mod stride_sched;
pub(crate) mod tickets;
pub mod time_sorted_sched;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    source::<drr_sched::DRRSched>().with_notifier(NotifierOrder::Configuration),
    source::<prio_sched::PrioSched>(),
    per_batch::<pull_switch::PullSwitch>().with_notifier(NotifierOrder::Initialization),
    source::<round_robin_sched::RoundRobinSched>(),
    source::<static_pull_switch::StaticPullSwitch>(),
    source::<stride_sched::StrideSched>(),
    source::<time_sorted_sched::TimeSortedSched>().with_notifier(NotifierOrder::Configuration),
];
