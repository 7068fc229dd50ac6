//! Elements that read, write or check the IPv6 header, with ICMPv6 and neighbour discovery.

pub mod check_ip6_header;
pub mod dec_ip6_hlim;
pub mod get_ip6_address;
pub mod icmp6_error;
mod icmp6_error_message;
pub mod ip6_encap;
pub mod ip6_fragmenter;
pub mod ip6_mirror;
pub mod ip6_nd_advertiser;
pub mod ip6_nd_solicitor;
pub mod mark_ip6_header;
pub mod set_ip6_address;
pub mod set_ip6_dscp;
pub mod set_transport_checksum_ip6;

use crate::arp::resolver::Resolver;
use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<check_ip6_header::CheckIP6Header>(),
    per_packet::<dec_ip6_hlim::DecIP6HLIM>(),
    per_packet::<get_ip6_address::GetIP6Address>(),
    per_packet::<icmp6_error::ICMP6Error>().with_few_packets(),
    per_packet::<ip6_encap::IP6Encap>(),
    per_batch::<ip6_fragmenter::IP6Fragmenter>(),
    per_packet::<ip6_mirror::IP6Mirror>(),
    per_packet::<ip6_nd_advertiser::IP6NDAdvertiser>().with_few_packets(),
    per_batch::<Resolver<ip6_nd_solicitor::IP6NDSolicitor>>().with_first_output(1),
    per_packet::<mark_ip6_header::MarkIP6Header>(),
    per_packet::<set_ip6_address::SetIP6Address>(),
    per_packet::<set_ip6_dscp::SetIP6DSCP>(),
    per_packet::<set_transport_checksum_ip6::SetTransportChecksumIP6>(),
];
