//! Elements that put packets into GTP tunnels and take them out.

pub mod gtp_decap;
pub mod gtp_encap;
pub mod gtp_lookup;
pub mod gtp_table;
mod gtp_table_state;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<gtp_decap::GTPDecap>(),
    per_packet::<gtp_encap::GTPEncap>(),
    per_batch::<gtp_lookup::GTPLookup>(),
    per_batch::<gtp_table::GTPTable>(),
];
