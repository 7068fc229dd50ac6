//! Elements that answer ARP requests and find Ethernet addresses by ARP, with the neighbour table.

pub mod args;
mod arp_protocol;
pub mod arp_querier;
pub mod arp_responder;
pub mod arp_table;
pub mod check_arp_header;
pub mod neighbour_cache;
pub mod neighbour_state;
pub(crate) mod reply_annotations;
pub(crate) mod resolver;
pub mod responder_entry;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    // The query that polls a stale entry leaves before the packet that uses the entry.
    per_batch::<resolver::Resolver<arp_querier::ARPQuerier>>().with_first_output(1),
    per_packet::<arp_responder::ARPResponder>().with_few_packets(),
    per_batch::<arp_table::ARPTable>(),
    per_packet::<check_arp_header::CheckARPHeader>(),
];
