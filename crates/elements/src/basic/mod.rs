//! Elements that take any packet, whatever its bytes mean.

pub mod check_ip_header;
pub mod check_ip_header2;
pub mod counter;
pub mod drop_broadcasts;
pub mod ether_encap;
pub mod get_ip_address;
pub mod radix_ip_lookup;
pub mod set_ip_address;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<check_ip_header::CheckIPHeader>(),
    per_packet::<check_ip_header2::CheckIPHeader2>(),
    per_packet::<counter::Counter>(),
    per_packet::<drop_broadcasts::DropBroadcasts>(),
    per_packet::<ether_encap::EtherEncap>(),
    per_packet::<get_ip_address::GetIPAddress>(),
    per_batch::<radix_ip_lookup::RadixIPLookup>(),
    per_packet::<set_ip_address::SetIPAddress>(),
];
