//! Elements that read or write the Ethernet header.

pub mod ether_mirror;
pub mod ether_rewrite;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<ether_mirror::EtherMirror>().with_checksums(Checksums::Pass),
    per_packet::<ether_rewrite::EtherRewrite>().with_checksums(Checksums::Pass),
];
