//! Elements that read or write the TCP header.

pub mod set_tcp_checksum;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[per_packet::<set_tcp_checksum::SetTCPChecksum>()];
