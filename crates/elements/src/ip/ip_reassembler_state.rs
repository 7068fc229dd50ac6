//! The state of `IPReassembler`: fragments of incomplete packets.

use castanet_element::prelude::*;
use castanet_kit::reassembly::Reassembler;

/// The fragments that wait.
#[derive(Default, Local)]
#[local(methods)]
pub struct IPReassemblerState(pub(super) Reassembler);

#[handlers]
impl IPReassemblerState {
    /// Counts of fragments and packets, and the ranges of bytes that have come of each incomplete
    /// packet.
    #[read]
    fn dump(&self) -> String {
        self.0.listing()
    }

    /// Number of incomplete packets.
    #[read]
    fn length(&self) -> usize {
        self.0.len()
    }
}
