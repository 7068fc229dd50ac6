//! Elements that read or write the UDP header.

pub mod set_udp_checksum;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[per_packet::<set_udp_checksum::SetUDPChecksum>()];
