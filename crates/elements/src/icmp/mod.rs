//! Elements that read or write the ICMP header.

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[];
