//! Elements that make, answer or check ICMP messages over IPv4.

pub mod check_icmp_header;
pub mod icmp_error;
mod icmp_error_message;
pub mod icmp_ip_encap;
pub mod icmp_ping_encap;
pub mod icmp_ping_responder;
pub mod icmp_ping_source;
mod ping_args;

use crate::ip::transport::TransportCheck;
use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<TransportCheck<check_icmp_header::CheckICMPHeader>>().acts_on("ip"),
    per_packet::<icmp_error::ICMPError>().with_few_packets(),
    per_packet::<icmp_ip_encap::ICMPIPEncap>(),
    per_packet::<icmp_ping_encap::ICMPPingEncap>(),
    per_packet::<icmp_ping_responder::ICMPPingResponder>().with_few_packets(),
    duplex::<icmp_ping_source::ICMPPingSource>(),
];
