//! The cost of a setup: memory, bytes for each packet, and the rates that follow.

use crate::digest::DIGEST_BYTES;
use crate::epoch::EpochRows;
use crate::private::PrivateFunction;
use crate::setup::SetupOptions;
use serde::Serialize;

/// Sizes of a setup and its rates, for both uses of blinds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SetupCost {
    /// Distinct matches: a packet with a blind of its own needs a digest for each.
    pub matches: usize,
    /// Distinct projections: a processor hashes a packet once for each.
    pub projections: usize,
    /// Digests for one blind, in bytes, which the client sends to each processor.
    pub row_bytes: u64,
    /// Digests of an epoch, in bytes.
    pub digest_bytes: u64,
    /// Tables over the digests of an epoch, in bytes.
    pub table_bytes: u64,
}

impl SetupCost {
    /// The cost of a function with these options.
    pub fn new(function: &PrivateFunction, options: &SetupOptions) -> SetupCost {
        let matches = function.matches().len();
        let row_bytes = (matches * DIGEST_BYTES) as u64;
        let digest_bytes = options.blinds.saturating_mul(row_bytes);
        let all = EpochRows::memory_bytes(function, options.blinds);
        SetupCost {
            matches,
            projections: function.projections().len(),
            row_bytes,
            digest_bytes,
            table_bytes: all.saturating_sub(digest_bytes),
        }
    }

    /// Memory of an epoch at each processor, in bytes.
    pub fn epoch_bytes(&self) -> u64 {
        self.digest_bytes + self.table_bytes
    }

    /// Packets that a link to each processor carries digests for, in a second, if each blind is used
    /// once; infinite without matches.
    pub fn packets_per_second(&self, link_bits_per_second: f64) -> f64 {
        link_bits_per_second / (8.0 * self.row_bytes as f64)
    }

    /// The time in which the client makes the digests for one packet with a blind of its own, in
    /// nanoseconds, if a hash takes `hash_ns`.
    pub fn client_ns(&self, hash_ns: f64) -> f64 {
        hash_ns * self.matches as f64
    }

    /// The time in which a processor hashes one packet, in nanoseconds, if a hash takes `hash_ns`.
    pub fn processor_ns(&self, hash_ns: f64) -> f64 {
        hash_ns * self.projections as f64
    }
}
