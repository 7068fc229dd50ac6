//! Elements that read or write the IPv4 header.

pub mod aggregate_ip_flows;
pub mod anonymize_ip_addr;
pub mod check_icmp_header;
pub mod check_tcp_header;
pub mod check_udp_header;
pub mod dec_ip_ttl;
pub mod fix_ip_src;
mod flow_fragments;
mod flow_trace;
mod flow_wishes;
pub mod icmp_error;
pub mod icmp_ping_responder;
pub mod icmp_ping_source;
pub mod ip_classifier;
pub mod ip_filter;
pub mod ip_fragmenter;
pub mod ip_gw_options;
pub mod ip_mirror;
pub mod ip_output_combo;
pub mod ip_print;
pub mod ip_reassembler;
pub mod mark_ipce;
pub mod protocol_translator46;
pub mod reset_ip_checksum;
pub mod set_ip_checksum;
pub mod set_ip_dscp;
pub mod strip_ip_header;
pub mod strip_transport_header;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_batch::<aggregate_ip_flows::AggregateIPFlows>(),
    per_batch::<anonymize_ip_addr::AnonymizeIPAddr>(),
    per_packet::<check_icmp_header::CheckICMPHeader>(),
    per_packet::<check_tcp_header::CheckTCPHeader>(),
    per_packet::<check_udp_header::CheckUDPHeader>(),
    per_packet::<dec_ip_ttl::DecIPTTL>(),
    per_packet::<fix_ip_src::FixIPSrc>(),
    per_packet::<icmp_error::ICMPError>(),
    per_packet::<icmp_ping_responder::ICMPPingResponder>(),
    duplex::<icmp_ping_source::ICMPPingSource>(),
    per_packet::<ip_classifier::IPClassifier>(),
    per_packet::<ip_filter::IPFilter>(),
    per_batch::<ip_fragmenter::IPFragmenter>(),
    per_packet::<ip_gw_options::IPGWOptions>(),
    per_packet::<ip_mirror::IPMirror>(),
    per_batch::<ip_output_combo::IPOutputCombo>(),
    per_batch::<ip_print::IPPrint>(),
    per_batch::<ip_reassembler::IPReassembler>(),
    per_packet::<mark_ipce::MarkIPCE>(),
    per_packet::<protocol_translator46::ProtocolTranslator46>(),
    per_packet::<reset_ip_checksum::ResetIPChecksum>(),
    per_packet::<set_ip_checksum::SetIPChecksum>(),
    per_packet::<set_ip_dscp::SetIPDSCP>(),
    per_packet::<strip_ip_header::StripIPHeader>(),
    per_packet::<strip_transport_header::StripTransportHeader>(),
];
