//! Elements that make or check UDP datagrams or change their headers.

pub mod check_udp_header;
pub mod dynamic_udp_ip_encap;
mod headers;
pub mod set_udp_checksum;
pub mod udp_ip6_encap;
pub mod udp_ip_encap;

use crate::ip::transport::TransportCheck;
use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<TransportCheck<check_udp_header::CheckUDPHeader>>().acts_on("ip"),
    per_packet::<dynamic_udp_ip_encap::DynamicUDPIPEncap>(),
    per_packet::<set_udp_checksum::SetUDPChecksum>(),
    per_packet::<udp_ip6_encap::UDPIP6Encap>(),
    per_packet::<udp_ip_encap::UDPIPEncap>(),
];
