//! Elements that read, write or check the IPv4 header, and fragments of IPv4 packets.

pub mod auto_mark_ip_header;
pub mod check_ip_header;
pub mod check_ip_header2;
pub mod dec_ip_ttl;
pub mod encap;
pub mod fix_ip_src;
pub mod get_ip_address;
mod header_checks;
pub mod ip_encap;
pub mod ip_fragmenter;
pub mod ip_fragmenter_state;
pub mod ip_gw_options;
pub mod ip_input_combo;
pub mod ip_mirror;
pub mod ip_output_combo;
pub mod ip_reassembler;
pub mod ip_reassembler_state;
pub mod mark_ip_header;
pub mod mark_ipce;
pub mod reset_ip_checksum;
pub mod set_ip_address;
pub mod set_ip_checksum;
pub mod set_ip_dscp;
pub mod set_ip_ecn;
pub mod set_rand_ip_address;
pub mod store_ip_address;
pub mod strip_ip_header;
pub mod transport;
pub mod unstrip_ip_header;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<auto_mark_ip_header::AutoMarkIPHeader>(),
    per_packet::<check_ip_header::CheckIPHeader>(),
    per_packet::<check_ip_header2::CheckIPHeader2>(),
    per_packet::<dec_ip_ttl::DecIPTTL>(),
    per_packet::<fix_ip_src::FixIPSrc>(),
    per_packet::<get_ip_address::GetIPAddress>(),
    per_packet::<ip_encap::IPEncap>(),
    per_batch::<ip_fragmenter::IPFragmenter>(),
    per_packet::<ip_gw_options::IPGWOptions>(),
    per_packet::<ip_input_combo::IPInputCombo>(),
    per_packet::<ip_mirror::IPMirror>(),
    per_batch::<ip_output_combo::IPOutputCombo>(),
    per_batch::<ip_reassembler::IPReassembler>(),
    per_packet::<mark_ipce::MarkIPCE>(),
    per_packet::<mark_ip_header::MarkIPHeader>(),
    per_packet::<reset_ip_checksum::ResetIPChecksum>(),
    per_packet::<set_ip_address::SetIPAddress>(),
    per_packet::<set_ip_checksum::SetIPChecksum>(),
    per_packet::<set_ip_dscp::SetIPDSCP>(),
    per_packet::<set_ip_ecn::SetIPECN>(),
    per_batch::<set_rand_ip_address::SetRandIPAddress>(),
    per_packet::<store_ip_address::StoreIPAddress>(),
    per_packet::<strip_ip_header::StripIPHeader>(),
    per_packet::<unstrip_ip_header::UnstripIPHeader>(),
];
