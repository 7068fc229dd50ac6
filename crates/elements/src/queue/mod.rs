//! Elements that keep packets for later or serve the pull side.

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
];
