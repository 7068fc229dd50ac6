//! Elements that take any packet, whatever its bytes mean.

pub mod counter;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<counter::Counter>(),
];
