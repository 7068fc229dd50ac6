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
    /// Start time of the first loop; `None` if the replay has not begun, or has ended.
    pub(super) started: Option<Time>,
    /// The arguments STOP and ACTIVE from which `stop` and `active` come.
    arguments: Option<(i64, bool)>,
    /// Number of loops that are left; no limit if negative.
    #[read]
    pub(super) stop: i64,
    /// Whether packets are replayed; false after the last loop.
    #[read]
    pub(super) active: bool,
    /// Whether a handler has set `active`, so that the next packet is due at once.
    resumed: bool,
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
        let PacketTrace { stop, active, arguments, .. } = *self;
        *self = PacketTrace { stop, active, arguments, ..PacketTrace::default() };
        Ok(())
    }
    /// Sets the number of loops that are left. A replay that has ended begins anew when `active` is
    /// written, too.
    #[write(stop)]
    fn set_stop(&mut self, text: &str) -> Result<(), ArgError> {
        self.stop = i64::from_arg(text.trim(), &Names::default())?;
        Ok(())
    }
    /// Starts or stops the replay. If no loops are left, a start stops the router.
    #[write(active)]
    fn set_active(&mut self, text: &str) -> Result<(), ArgError> {
        self.active = bool::from_arg(text.trim(), &Names::default())?;
        self.resumed = true;
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

    /// Takes over the arguments STOP and ACTIVE, if they are new.
    pub(super) fn configure(&mut self, stop: i64, active: bool) {
        if self.arguments != Some((stop, active)) {
            (self.arguments, self.stop, self.active) = (Some((stop, active)), stop, active);
        }
    }

    /// Has the next packet be due now, if a handler has resumed the replay.
    pub(super) fn resume(&mut self, now: Time) {
        if std::mem::take(&mut self.resumed) {
            self.timed_by = (now, self.stamp(self.next).unwrap_or_default());
            self.last = self.timed_by;
            self.started.get_or_insert(now);
        }
    }

    /// Starts the first loop.
    pub(super) fn begin(&mut self, now: Time) {
        self.started.get_or_insert(now);
        self.rewind(now);
    }

    /// Ends the replay, until a handler starts it.
    pub(super) fn end(&mut self) {
        (self.active, self.started) = (false, None);
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

    /// The output of the next packet.
    pub(super) fn next_output(&self) -> u8 {
        self.packets.get(self.next).map_or(0, |it| it.0)
    }

    /// Adds the next packets of one output to a batch, up to `most`: copies, or packets that share their bytes with the
    /// trace. Returns how many.
    #[inline]
    pub(super) fn take(&mut self, most: usize, batch: &mut Batch, cx: &mut Cx) -> usize {
        let (output, before) = (self.next_output(), batch.len());
        let next = self.packets[self.next..].iter_mut().take(most);
        for (_, packet) in next.take_while(|it| it.0 == output) {
            batch.push(cx.copy_or_share(packet));
        }
        let taken = batch.len() - before;
        self.next += taken;
        let last = self.next.checked_sub(1).and_then(|last| self.stamp(last));
        self.last = (cx.now(), last.unwrap_or_default());
        taken
    }
}
