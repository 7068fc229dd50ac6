//! Elements that read or write the UDP header.

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
];
