//! Elements that add, remove or annotate VLAN tags.

pub mod ether_vlan_encap;
pub mod set_vlan_anno;
pub mod strip_ether_vlan_header;
mod tci;
pub mod vlan_decap;
pub mod vlan_encap;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<ether_vlan_encap::EtherVLANEncap>(),
    per_packet::<set_vlan_anno::SetVLANAnno>(),
    per_packet::<strip_ether_vlan_header::StripEtherVLANHeader>(),
    per_packet::<vlan_decap::VLANDecap>(),
    per_packet::<vlan_encap::VLANEncap>(),
];
