//! Queues, elements that empty them at full speed, and early drop (RED).

pub mod co_del;
pub mod front_drop_queue;
pub mod min_batch;
pub mod mixed_queue;
pub mod notifier_debug;
#[allow(clippy::module_inception)] // the element is called what the room is
pub mod queue;
mod queue_state;
pub mod red;
mod red_state;
pub mod simple_queue;
pub mod unqueue;
pub mod unqueue2;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    source::<co_del::CoDel>().with_watch(co_del::CoDel::queues),
    store::<front_drop_queue::FrontDropQueue>(),
    per_batch::<min_batch::MinBatch>(),
    store::<mixed_queue::MixedQueue>(),
    per_batch::<notifier_debug::NotifierDebug>().with_signal(),
    store::<queue::Queue>(),
    per_batch::<red::RED>().with_watch(red::RED::queues),
    store::<simple_queue::SimpleQueue>(),
    source::<unqueue::Unqueue>(),
    source::<unqueue2::Unqueue2>().with_watch(unqueue2::Unqueue2::queues).may_watch_none(),
];
