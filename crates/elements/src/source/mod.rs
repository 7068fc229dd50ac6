//! Elements that make packets from nothing.

mod copies;
pub mod infinite_source;
pub mod random_source;
pub mod rated_source;
pub mod timed_source;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    source::<infinite_source::InfiniteSource>(),
    source::<random_source::RandomSource>(),
    source::<rated_source::RatedSource>(),
    source::<timed_source::TimedSource>(),
];
