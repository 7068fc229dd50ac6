//! Elements that read or write the TCP header.

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
];
