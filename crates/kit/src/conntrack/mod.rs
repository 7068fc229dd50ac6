//! Connection tracking: a table of flows by key, in which a lookup takes two cache misses, flows
//! expire without a scan, and memory is bounded.
//!
//! [`Table`] holds the flows, each with an [`Entry`] and one key or two: a connection whose
//! addresses are rewritten is found by the tuples on either side. Both directions of a flow can
//! share one key, because [`TupleKey::ordered`] gives them the same. [`LookupBatch`] looks up a
//! burst. [`rewrite_tuple`] and [`rewrite_error`] write another tuple into a packet.
//!
//! The table takes memory with its first flow and grows a page at a time: an insertion moves at
//! most some hundred other flows and copies a directory of four bytes a page. Keys are hashed under
//! a random seed, so that an attacker cannot choose keys that collide.
//!
//! Workers may share a table for reading. Meanwhile each packet can still postpone the expiry of
//! its flow ([`Flow::postpone`]).

mod batch;
mod entries;
mod index;
mod rewrite;
mod table;
#[cfg(test)]
mod tests;
mod tuple;
mod wheel;

use crate::seed::Seed;

pub use batch::LookupBatch;
pub use entries::{Flow, Id, Slot};
pub(crate) use rewrite::write_tuple;
pub use rewrite::{HeaderOffsets, replace_tuple, rewrite_error, rewrite_tuple};
pub use table::{TABLE_PART, Table};
pub use tuple::{Address, Tuple, Tuple4, Tuple6, TupleKey};

/// The key of a flow.
pub trait Key: Copy + Eq + Default {
    /// A hash of 64 bits, each of which depends on the whole key and the seed.
    fn hash(&self, seed: &Seed) -> u64;
}

/// The data of a flow.
pub trait Entry: Default {
    /// The type of its keys.
    type Key: Key;

    /// Its second key, if it has one; it must not change while the flow is in the table.
    fn second_key(&self) -> Option<&Self::Key> {
        None
    }
}

/// Counters since the table was created.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Flows that were added.
    pub added: u64,
    /// Flows that expired.
    pub expired: u64,
    /// Flows that were evicted before their expiry, to make room.
    pub evicted: u64,
    /// Flows that were refused for lack of room.
    pub refused: u64,
}

/// The operation needs exclusive access to the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExclusiveAccess;
