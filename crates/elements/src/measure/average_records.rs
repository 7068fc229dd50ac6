//! The counts of an `AverageCounter` as records for another instance.

use super::average_counter::AverageCounterState;
use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter, add_counts};
use castanet_element::prelude::*;
use castanet_kit::ewma::Average;

/// Counts that are added, and the time of the first and the last packet.
impl PortableState for AverageCounterState {
    fn export(&self, _: u64, to: &mut RecordWriter) -> Option<u64> {
        let Average { packets, bytes, .. } = self.average;
        if let Some((first, last)) = self.average.span() {
            let span = [first, last].map(|it| to.epoch.offset(it));
            to.write(&(), &([packets, bytes], span, self.ignore, self.fcs));
        }
        None
    }

    fn import(&mut self, record: &RecordReader, _: &mut Cx) -> Result<(), ArgError> {
        let (counts, [first, last], ignore, fcs) = record.value()?;
        (self.ignore, self.fcs) = (ignore, fcs);
        self.average.extend_span((record.epoch.nanos(first), record.epoch.nanos(last)));
        add_counts([&mut self.average.packets, &mut self.average.bytes], counts)
    }
}
