//! A packet trace in memory, with the position of its replay.

use castanet_element::prelude::*;
use std::collections::VecDeque;

/// The packets to replay, and the position among them.
#[derive(Default, Local)]
#[local(methods)]
pub struct PacketTrace {
    /// The packets in order, with the output of each.
    packets: Vec<(u8, Packet)>,
    /// While the trace is loaded: packets pulled and not yet sorted in, by input.
    ahead: Vec<VecDeque<Packet>>,
    /// Number of loads in a row in which no input had a packet.
    empty_loads: u32,
    loaded: bool,
    /// Index of the next packet.
    next: usize,
    /// A time at which a packet was due, and the time stamp of it; the others are timed by it.
    timed_by: (Time, i64),
    /// The time at which the last packet was emitted, and its time stamp.
    last: (Time, i64),
    /// The speed in percent, where a function determines it.
    pub(super) speed: u32,
    /// Start time of the first loop.
    pub(super) started: Time,
    /// Number of complete loops.
    pub(super) loops: u64,
    /// Whether the last loop has ended, and the router was asked to stop.
    pub(super) ended: bool,
}

#[handlers]
impl PacketTrace {
    /// Whether all packets are in memory.
    #[read(loaded)]
    pub(super) fn is_loaded(&self) -> bool {
        self.loaded
    }
    /// Drops all packets, and loads others.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        *self = PacketTrace::default();
        Ok(())
    }
}

/// After so many empty loads the inputs are dry: other tasks have run in between, so that no
/// packets are in transit to the inputs.
const DRY_AFTER: u32 = 2;

/// A copy in memory of its own, as a trace may have more packets than the pool has buffers.
fn deep_copy(packet: &Packet) -> Packet {
    let mut copy = Packet::from_bytes(packet.bytes());
    copy.copy_annotations(packet);
    copy.copy_header_offsets(packet);
    copy
}

impl PacketTrace {
    /// Whether nothing was pulled yet.
    pub(super) fn is_new(&self) -> bool {
        self.ahead.is_empty() && self.packets.is_empty()
    }

    /// Pulls up to `n` packets of each input. Once the trace is complete, as `limit` packets are
    /// stored or an input is dry, it returns the number of the dry input, if there is one.
    pub(super) fn load(&mut self, n: usize, limit: usize, cx: &mut Cx) -> Option<Option<usize>> {
        self.ahead.resize_with(cx.inputs(), VecDeque::new);
        let mut has_pulled = false;
        for (input, ahead) in self.ahead.iter_mut().enumerate().filter(|(_, a)| a.is_empty()) {
            let batch = cx.pull(input, n);
            has_pulled |= !batch.is_empty();
            ahead.extend(batch.iter().map(deep_copy));
        }
        while self.packets.len() < limit && self.ahead.iter().all(|ahead| !ahead.is_empty()) {
            let time = |ahead: &VecDeque<Packet>| ahead.front().map(Packet::timestamp);
            let Some(input) = (0..self.ahead.len()).min_by_key(|&i| time(&self.ahead[i])) else {
                break;
            };
            let mut packet = self.ahead[input].pop_front();
            packet.iter_mut().for_each(|packet| packet.set_paint(input as u8));
            self.packets.extend(packet.map(|packet| (input as u8, packet)));
        }
        self.empty_loads = if has_pulled || cx.has_retry() { 0 } else { self.empty_loads + 1 };
        let full = self.packets.len() >= limit;
        self.loaded = !self.packets.is_empty() && (full || self.empty_loads >= DRY_AFTER);
        let dry = self.ahead.iter().position(VecDeque::is_empty);
        if self.loaded {
            let unmatched = self.ahead.drain(..).flatten();
            unmatched.for_each(|packet| cx.emit(Port::DROP, packet));
        }
        self.loaded.then_some(dry)
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Number of packets in memory, also those not sorted in.
    pub(super) fn held(&self) -> usize {
        self.packets.len() + self.ahead.iter().map(VecDeque::len).sum::<usize>()
    }

    /// Starts the first loop.
    pub(super) fn begin(&mut self, now: Time) {
        (self.started, self.loops) = (now, 0);
        self.rewind(now);
    }

    /// Has the replay go on, if it has ended, and counts its loops from zero.
    pub(super) fn restart(&mut self) {
        self.ended = false;
        self.loops = 0;
    }

    /// Starts a loop at the first packet.
    pub(super) fn rewind(&mut self, now: Time) {
        self.next = 0;
        self.timed_by = (now, self.stamp(0).unwrap_or_default());
        self.last = self.timed_by;
    }

    /// Changes the speed from the last packet on.
    pub(super) fn set_speed(&mut self, speed: u32) {
        (self.speed, self.timed_by) = (speed, self.last);
    }

    fn stamp(&self, at: usize) -> Option<i64> {
        self.packets.get(at).map(|(_, packet)| packet.timestamp())
    }

    pub(super) fn at_end(&self) -> bool {
        self.next >= self.packets.len()
    }

    /// The time at which the next packet is due at a speed in percent; `None` if immediately.
    pub(super) fn due(&self, speed: u32) -> Option<Time> {
        let speed = (speed > 0).then_some(speed)?;
        let (from, first) = self.timed_by;
        let since = self.stamp(self.next)?.saturating_sub(first).max(0);
        let wait = u128::from(since.unsigned_abs()) * 100 / u128::from(speed);
        Some(from + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX)))
    }

    /// The next packet, a copy or one that shares its bytes with the trace, and its output.
    #[inline]
    pub(super) fn next(&mut self, cx: &mut Cx) -> (u8, Packet) {
        let (port, packet) = &mut self.packets[self.next];
        self.next += 1;
        self.last = (cx.now(), packet.timestamp());
        (*port, cx.copy_or_share(packet))
    }
}
