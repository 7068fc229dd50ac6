//! A trace in memory, and how far its replay has come.

use castanet_engine::prelude::*;
use std::collections::VecDeque;

/// Packets to be replayed.
#[derive(Default, Local)]
#[local(methods)]
pub struct Trace {
    /// The packets in order, with the output of each.
    packets: Vec<(u8, Packet)>,
    /// While it is loaded, by input: what was pulled ahead.
    ahead: Vec<VecDeque<Packet>>,
    /// How often in a row an input had nothing.
    quiet: u32,
    loaded: bool,
    /// The next to go.
    next: usize,
    /// When this time round began.
    round: Time,
    /// When the first time round began.
    pub(super) began: Time,
    /// How often it has been replayed.
    pub(super) loops: u64,
    /// Whether the end was reached, and the router told to stop.
    pub(super) ended: bool,
}

#[handlers]
impl Trace {
    /// Throws the packets away, and begins to keep others.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        *self = Trace::default();
        Ok(())
    }
}

/// Others had a turn in between, so that nothing is on its way.
const SURE: u32 = 2;

/// The same packet in memory of its own: a trace may have more packets than
/// there are frames.
fn apart(packet: &Packet) -> Packet {
    let mut copy = Packet::from_bytes(packet.bytes());
    copy.copy_annotations(packet);
    copy.copy_header_offsets(packet);
    copy
}

impl Trace {
    /// Pulls more packets, until `limit` are kept or an input has run dry;
    /// whether that is so.
    pub(super) fn load(&mut self, n: usize, limit: usize, cx: &mut Cx) -> bool {
        self.ahead.resize_with(cx.inputs(), VecDeque::new);
        let mut got = false;
        for (input, ahead) in self.ahead.iter_mut().enumerate().filter(|(_, a)| a.is_empty()) {
            let batch = cx.pull(input, n);
            got |= !batch.is_empty();
            ahead.extend(batch.iter().map(apart));
        }
        while self.packets.len() < limit && self.ahead.iter().all(|ahead| !ahead.is_empty()) {
            let time = |ahead: &VecDeque<Packet>| ahead.front().map(Packet::timestamp);
            let Some(input) = (0..self.ahead.len()).min_by_key(|&i| time(&self.ahead[i])) else {
                break;
            };
            let packet = self.ahead[input].pop_front();
            self.packets.extend(packet.map(|packet| (input as u8, packet)));
        }
        self.quiet = if got || cx.is_later() { 0 } else { self.quiet + 1 };
        let full = self.packets.len() >= limit;
        self.loaded = !self.packets.is_empty() && (full || self.quiet >= SURE);
        if self.loaded {
            let left = self.ahead.drain(..).flatten();
            left.for_each(|packet| cx.emit(Port::DROP, packet));
        }
        self.loaded
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.loaded
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// How many packets are kept in all.
    pub(super) fn held(&self) -> usize {
        self.packets.len() + self.ahead.iter().map(VecDeque::len).sum::<usize>()
    }

    /// Begins to replay.
    pub(super) fn begin(&mut self, now: Time) {
        (self.began, self.loops) = (now, 0);
        self.rewind(now);
    }

    /// Counts from zero how often it is replayed.
    pub(super) fn forget_loops(&mut self) {
        self.loops = 0;
    }

    /// Begins again from the first packet.
    pub(super) fn rewind(&mut self, now: Time) {
        (self.next, self.round) = (0, now);
    }

    pub(super) fn at_end(&self) -> bool {
        self.next >= self.packets.len()
    }

    /// When the next packet is due at this speed, in percent.
    pub(super) fn due(&self, speed: u32) -> Option<Time> {
        let stamp = |at: usize| self.packets.get(at).map(|(_, packet)| packet.timestamp());
        let since = stamp(self.next)?.saturating_sub(stamp(0)?).max(0);
        let wait =
            u128::from(since.unsigned_abs()) * 100 / u128::from((speed > 0).then_some(speed)?);
        Some(self.round + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX)))
    }

    /// The next packet, which stays here too, and its output.
    pub(super) fn next(&mut self, cx: &mut Cx) -> (u8, Packet) {
        let (port, packet) = &mut self.packets[self.next];
        self.next += 1;
        (*port, cx.share(packet))
    }
}
