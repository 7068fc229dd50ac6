//! Elements that read or write the Ethernet header.

pub mod ether_mirror;
pub mod ether_rewrite;
pub mod ether_switch;
pub mod strip_ether_vlan_header;
pub mod vlan_decap;
pub mod vlan_encap;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<ether_mirror::EtherMirror>().with_checksums(Checksums::Pass),
    per_packet::<ether_rewrite::EtherRewrite>().with_checksums(Checksums::Pass),
    per_batch::<ether_switch::EtherSwitch>(),
    per_packet::<strip_ether_vlan_header::StripEtherVLANHeader>(),
    per_packet::<vlan_decap::VLANDecap>(),
    per_packet::<vlan_encap::VLANEncap>(),
];
