//! Counts of bursts, of their packets and of the bytes of these.

use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter, add_counts};
use castanet_element::prelude::*;

/// The counts of a period.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) batches: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// Counts that are added.
impl PortableState for Counts {
    fn export(&self, _: u64, to: &mut RecordWriter) -> Option<u64> {
        to.write(&(), &[self.batches, self.packets, self.bytes]);
        None
    }

    fn import(&mut self, record: &RecordReader, _: &mut Cx) -> Result<(), ArgError> {
        let counts = record.value()?;
        add_counts([&mut self.batches, &mut self.packets, &mut self.bytes], counts)
    }
}
