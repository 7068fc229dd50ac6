//! Elements that look up routes by the longest prefix.

pub mod lookup_ip6_route;
pub mod radix_ip_lookup;
mod route_table;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<lookup_ip6_route::LookupIP6Route>(),
    per_packet::<radix_ip_lookup::RadixIPLookup>(),
];
