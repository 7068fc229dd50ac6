//! Elements that read or write the IPv4 header.

pub mod dec_ip_ttl;
pub mod fix_ip_src;
pub mod ip_fragmenter;
pub mod ip_gw_options;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<dec_ip_ttl::DecIPTTL>(),
    per_packet::<fix_ip_src::FixIPSrc>(),
    per_batch::<ip_fragmenter::IPFragmenter>(),
    per_packet::<ip_gw_options::IPGWOptions>(),
];
