//! The cost of a setup: memory, bytes for each packet, and the rates that follow.

use crate::digest::DIGEST_BYTES;
use crate::private::PrivateFunction;
use crate::setup::SetupOptions;
use serde::Serialize;

/// Sizes of a setup and its rates, for both uses of blinds.
#[derive(Clone, PartialEq, Debug, Serialize)]
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
        let mut counts = vec![0_u64; function.projections().len()];
        function.matches().iter().for_each(|&projection| counts[projection] += 1);
        let matches = function.matches().len();
        let row_bytes = (matches * DIGEST_BYTES) as u64;
        // A table has two slots or more for each digest, and each slot the number of a column.
        let slots: u64 = counts.iter().map(|count| (2 * count).next_power_of_two()).sum();
        SetupCost {
            matches,
            projections: counts.len(),
            row_bytes,
            digest_bytes: options.blinds * row_bytes,
            table_bytes: options.blinds * slots * size_of::<u32>() as u64,
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
