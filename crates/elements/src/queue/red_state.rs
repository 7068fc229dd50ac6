//! The state of `RED`, and its handlers.

use castanet_element::prelude::*;
use castanet_kit::red::Red;

/// The average queue length and the drops. All workers share it.
#[derive(Default, Local)]
#[local(methods)]
pub struct REDState {
    pub(super) red: Red,
    /// Total length of the watched queues when the last packet came.
    pub(super) length: usize,
    /// Packets dropped.
    #[read]
    #[portable]
    pub(super) drops: u64,
}

#[handlers]
impl REDState {
    /// The average queue length.
    #[read]
    fn avg_queue_size(&self) -> String {
        self.red.average_text()
    }
    /// The current queue length, the average queue length, and the number of drops, one per line.
    #[read]
    fn stats(&self) -> String {
        let (length, average, drops) = (self.length, self.red.average_text(), self.drops);
        format!("{length} current queue\n{average} avg queue\n{drops} drops\n")
    }
}
