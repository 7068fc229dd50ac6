//! Elements that make packets from nothing.

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
];
