//! State of `IPFragmenter`: its counters.

use castanet_element::prelude::*;

/// Counters of one worker.
#[derive(Default, Local)]
pub struct IPFragmenterState {
    /// Number of fragments sent.
    #[read]
    #[portable]
    pub(super) fragments: u64,
    /// Number of packets that were too long but not fragmented.
    #[read]
    #[portable]
    pub(super) drops: u64,
}
