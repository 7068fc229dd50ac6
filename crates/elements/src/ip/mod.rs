//! Elements that read or write the IPv4 header.

pub mod dec_ip_ttl;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<dec_ip_ttl::DecIPTTL>(),
];
