//! Epochs at the parties: the client makes the rows of an epoch ahead and sends them to the processors;
//! when all of them have the rows, it permits the entry to use the epoch.

mod client;
mod entry;
mod messages;
mod processor;
#[cfg(test)]
mod tests;

pub use client::{ClientEpoch, ClientEpochs, EntryReport, RowDatagram};
pub use entry::{EntryEpoch, EntryEpochs};
pub use messages::{EpochStatus, Hello, Status};
pub use processor::{ProcessorEpoch, ProcessorEpochs, RowsRefusal};

/// Epochs that the client prepares before the entry needs them.
pub const AHEAD: usize = 2;

/// Epochs whose rows a processor has at a time: those that are prepared, the present one, and the one
/// before.
pub const MAX_EPOCHS: usize = AHEAD + 2;
