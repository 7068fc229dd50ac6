//! Connection tracking and NAT: connections with their rules and translations.
//!
//! All workers share one table. Under shared access a worker looks up the packets of a burst
//! ([`BurstLookup`], one per worker) and records what came; creating or removing a connection needs
//! exclusive access.

mod connection_meter;
mod entry;
mod limited;
mod listing;
mod lookup;
mod mapping;
mod nat_request;
mod packet_connection;
mod record;
mod rule_refs;
mod seq_offsets;
mod table;
#[cfg(test)]
mod tests;
mod tracking;
mod tuple;

pub(crate) use connection_meter::octets;
pub(crate) use entry::ConnectionState;
pub(crate) use listing::{ConnectionFormat, json_array};
pub(crate) use lookup::{BurstLookup, LookupKey};
pub(crate) use mapping::{Mapping, rewrite_packet4};
pub(crate) use packet_connection::{LookupResult, PacketConnection};
pub(crate) use record::{ConnectionKey, ConnectionRecord};
pub(crate) use table::{Connections, TupleRewrite};
pub(crate) use tuple::{addresses, has_own_tuple, quotes, read_any_tuple};
