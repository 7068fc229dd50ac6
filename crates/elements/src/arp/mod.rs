//! Elements that answer ARP requests and find Ethernet addresses by ARP, with the neighbour table.

pub mod arp_querier;
pub mod arp_responder;
pub mod arp_table;
pub mod cache;
pub mod entry;
pub mod neighbours;
pub mod settings;
mod station;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    // A poll leaves before the packet that it is sent for.
    per_batch::<arp_querier::ARPQuerier>().with_first_output(1),
    per_packet::<arp_responder::ARPResponder>(),
    per_batch::<arp_table::ARPTable>(),
];
