//! Elements that read or write the ICMP header.

pub mod icmp_rewriter;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[per_batch::<icmp_rewriter::ICMPRewriter>()];
