//! Elements that take ARP packets.

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[];
