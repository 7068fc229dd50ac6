//! The packets on the link of a `LinkUnqueue`, and their records for another instance.

use super::shaped_traffic::ShapedTraffic;
use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter};
use castanet_element::prelude::*;
use std::collections::VecDeque;

/// The packets on the link, and those that have arrived.
#[derive(Default, Local)]
#[local(methods)]
#[portable(packets)]
pub struct LinkUnqueueState {
    /// The packets, each with the time of its arrival.
    pub(super) packets: VecDeque<(Time, Packet)>,
    /// Time at which the transmission of the next packet may begin.
    pub(super) free: Time,
    /// Whether the pulls have found a packet ready each time since the last transmission ended.
    pub(super) queued: bool,
    /// Number of changes of the link by handlers that the packets have followed.
    pub(super) writes: u64,
    #[flatten]
    #[portable]
    pub(super) shaped: ShapedTraffic,
}

#[handlers]
impl LinkUnqueueState {
    /// Number of packets on the link, the one that is being transmitted included.
    #[read]
    fn size(&self) -> usize {
        self.packets.len()
    }
    /// Drops all packets on the link.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        *self = LinkUnqueueState { writes: self.writes, ..LinkUnqueueState::default() };
        Ok(())
    }
}

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
