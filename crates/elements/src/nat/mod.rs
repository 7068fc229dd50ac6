//! Elements that translate addresses, ports and IP versions, per flow or per packet.

pub mod address_translator;
mod address_translator_args;
pub mod address_translator_state;
mod burst;
mod fragments;
pub mod ftp_port_mapper;
pub mod icmp_ping_rewriter;
pub mod icmp_rewriter;
pub mod ip_addr_pair_rewriter;
pub mod ip_addr_rewriter;
pub mod ip_rewriter;
pub mod ip_rewriter_patterns;
mod metrics;
pub mod name_resolution;
mod portable_mappings;
mod protocol_translation;
pub mod protocol_translator46;
pub mod protocol_translator64;
pub mod rewriter;
pub mod rewriter_args;
pub mod rewriter_exits;
mod rewriter_methods;
pub mod round_robin_ip_mapper;
pub mod source_ip_hash_mapper;
pub mod tcp_rewriter;
pub mod thread_ip_mapper;
pub mod udp_rewriter;
pub(crate) mod worker_tables;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_batch::<address_translator::AddressTranslator>(),
    per_batch::<ftp_port_mapper::FTPPortMapper>(),
    per_batch::<icmp_ping_rewriter::ICMPPingRewriter>().with_rw_shared_state(),
    per_batch::<icmp_rewriter::ICMPRewriter>(),
    per_batch::<ip_addr_pair_rewriter::IPAddrPairRewriter>().with_rw_shared_state(),
    per_batch::<ip_addr_rewriter::IPAddrRewriter>().with_rw_shared_state(),
    per_batch::<ip_rewriter::IPRewriter>().with_rw_shared_state(),
    info::<ip_rewriter_patterns::IPRewriterPatterns>(),
    per_packet::<protocol_translator46::ProtocolTranslator46>(),
    per_packet::<protocol_translator64::ProtocolTranslator64>(),
    info::<round_robin_ip_mapper::RoundRobinIPMapper>(),
    info::<source_ip_hash_mapper::SourceIPHashMapper>(),
    per_batch::<tcp_rewriter::TCPRewriter>().with_rw_shared_state(),
    info::<thread_ip_mapper::ThreadIPMapper>(),
    per_batch::<udp_rewriter::UDPRewriter>().with_rw_shared_state(),
];
