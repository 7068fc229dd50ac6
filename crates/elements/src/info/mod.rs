//! Elements without packets, which tell the configuration names, facts and errors.

pub mod address_info;
pub mod alignment_info;
pub mod annotation_info;
pub mod clicky_info;
pub mod error;
pub mod jiffie_clock;
pub mod message;
pub mod port_info;
pub mod random_seed;
pub mod schedule_info;
pub mod tsc_clock;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    info::<address_info::AddressInfo>(),
    info::<alignment_info::AlignmentInfo>(),
    info::<annotation_info::AnnotationInfo>(),
    info::<clicky_info::ClickyInfo>(),
    per_batch::<error::Error>(),
    per_batch::<jiffie_clock::JiffieClock>(),
    info::<message::Message>(),
    info::<port_info::PortInfo>(),
    info::<random_seed::RandomSeed>(),
    info::<schedule_info::ScheduleInfo>(),
    per_batch::<tsc_clock::TSCClock>(),
];
