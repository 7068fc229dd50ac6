//! The packets on the link of a `LinkUnqueue` as records for another instance.

use super::link_unqueue::LinkUnqueueState;
use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter};
use castanet_element::prelude::*;

/// The packets on the link, each with the time of its arrival.
impl PortableState for LinkUnqueueState {
    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        const PART: usize = 256;
        let first = usize::try_from(from).unwrap_or(usize::MAX);
        for ((arrival, packet), at) in self.packets.iter().skip(first).take(PART).zip(from..) {
            let arrival = to.epoch.offset(arrival.nanos());
            to.write_packet(&(at.to_be_bytes(), arrival), packet);
        }
        let end = first.saturating_add(PART);
        (end < self.packets.len()).then_some(end as u64)
    }

    fn import(&mut self, record: &RecordReader, cx: &mut Cx) -> Result<(), ArgError> {
        let (_, arrival): ([u8; 8], i64) = record.key()?;
        let arrival = Time::from_nanos(record.epoch.nanos(arrival));
        self.packets.push_back((arrival, record.packet(cx)?));
        Ok(())
    }
}
