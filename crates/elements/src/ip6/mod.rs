//! Elements that take IPv6 packets.

pub mod address_translator;
pub mod dec_ip6_hlim;
pub mod icmp6_error;
pub mod ip6_fragmenter;
pub mod ip6_mirror;
pub mod ip6_print;
pub mod protocol_translator64;
pub mod set_ip6_dscp;
pub mod set_transport_checksum_ip6;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_batch::<address_translator::AddressTranslator>(),
    per_packet::<dec_ip6_hlim::DecIP6HLIM>(),
    per_packet::<icmp6_error::ICMP6Error>(),
    per_batch::<ip6_fragmenter::IP6Fragmenter>(),
    per_packet::<ip6_mirror::IP6Mirror>(),
    per_batch::<ip6_print::IP6Print>(),
    per_packet::<protocol_translator64::ProtocolTranslator64>(),
    per_packet::<set_ip6_dscp::SetIP6DSCP>(),
    per_packet::<set_transport_checksum_ip6::SetTransportChecksumIP6>(),
];
