//! Elements that put packets into tunnels (GRE, VXLAN, Geneve, GTP) and take them out.

pub mod geneve_decap;
pub mod geneve_encap;
pub mod gre_decap;
pub mod gre_encap;
pub mod gtp_decap;
pub mod gtp_encap;
pub mod gtp_lookup;
pub mod gtp_table;
mod gtp_table_state;
mod network_identifier;
mod tunnel_argument;
pub mod tunnel_decap;
pub mod tunnel_encap;
mod tunnel_protocol;
pub mod vxlan_decap;
pub mod vxlan_encap;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<geneve_decap::GeneveDecap>(),
    per_packet::<geneve_encap::GeneveEncap>(),
    per_packet::<gre_decap::GREDecap>(),
    per_packet::<gre_encap::GREEncap>(),
    per_packet::<gtp_decap::GTPDecap>(),
    per_packet::<gtp_encap::GTPEncap>(),
    per_batch::<gtp_lookup::GTPLookup>(),
    per_batch::<gtp_table::GTPTable>(),
    per_packet::<tunnel_decap::TunnelDecap>(),
    per_packet::<tunnel_encap::TunnelEncap>(),
    per_packet::<vxlan_decap::VXLANDecap>(),
    per_packet::<vxlan_encap::VXLANEncap>(),
];
