//! The elements of SplitBox: the parties as parts of a graph.

mod client_lane;
mod datagram_packet;
mod entry_lane;
mod exit;
mod party_args;
#[allow(missing_docs)] // the manual says it
pub mod split_box_client;
#[allow(missing_docs)] // the manual says it
pub mod split_box_entry;
#[allow(missing_docs)] // the manual says it
pub mod split_box_processor;

use castanet_element::class::{Class, per_batch};

/// Every class of this crate.
pub static CLASSES: &[Class] = &[
    per_batch::<split_box_client::SplitBoxClient>()
        .with_resources(split_box_client::resources)
        .with_rw_shared_state(),
    per_batch::<split_box_entry::SplitBoxEntry>()
        .with_resources(split_box_entry::resources)
        .with_rw_shared_state(),
    per_batch::<split_box_processor::SplitBoxProcessor>()
        .with_resources(split_box_processor::resources)
        .with_rw_shared_state(),
];
